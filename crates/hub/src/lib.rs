//! Many servers behind one, and the bridge between the eras.

mod names;

pub use self::names::{Collision, Kind, NameTemplate, NameTemplateError};
