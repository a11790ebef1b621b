//! Many servers behind one, and the bridge between the eras.

mod names;
mod registry;

pub use self::names::{Collision, Kind, NameTemplate, NameTemplateError};
pub use self::registry::ResourceTools;
