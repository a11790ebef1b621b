//! JSON that is carried, not rewritten: raw values, ordered members, a writer and a scanner.
//!
//! A value that nobody changes is copied verbatim, so numbers keep their digits and objects their order. Equal keys in
//! one object are refused, because two readers of one message must never see two different things.

mod distinct;
mod key;
mod members;
mod raw;
mod scan;
mod surrogate;
mod writer;

pub(crate) use self::distinct::Keys;
pub(crate) use self::key::Key;
pub(crate) use self::members::{COMMON, Collector};
pub use self::members::{MalformedJson, Members};
pub use self::raw::{JsonKind, Raw};
pub(crate) use self::scan::{Named, ScanError, Scanner};
pub(crate) use self::surrogate::replace_lone_surrogates;
pub use self::writer::Writer;
