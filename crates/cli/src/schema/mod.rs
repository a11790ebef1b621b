//! What a JSON Schema means to a person: signatures, arguments as they are typed, names that were nearly right.

mod arguments;
mod coerce;
mod export;
mod near;
mod shape;
mod signature;

pub(crate) use self::arguments::read_arguments;
pub(crate) use self::coerce::coerce;
pub(crate) use self::export::{Vendor, export};
pub(crate) use self::near::did_you_mean;
pub(crate) use self::shape::{Choice, Kind, Property, Shape};
pub(crate) use self::signature::{literal, prompt_signature, tool_signature, type_words};
