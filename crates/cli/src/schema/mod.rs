//! JSON Schema for users: signatures, typed arguments, and suggestions for misspelled names.

mod arguments;
mod check;
mod coerce;
mod export;
mod shape;
mod signature;
mod suggest;

pub(crate) use self::arguments::read_arguments;
pub(crate) use self::check::check_schema;
pub(crate) use self::coerce::coerce;
pub(crate) use self::export::{Vendor, export};
pub(crate) use self::shape::{EnumChoice, JsonType, Property, ValueShape};
pub(crate) use self::signature::{literal, prompt_signature, tool_signature, type_text};
pub(crate) use self::suggest::did_you_mean;
