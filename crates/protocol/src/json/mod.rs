//! JSON that is forwarded, not rewritten: raw values, ordered members, a writer and a scanner.
//!
//! An unchanged value is copied verbatim, so numbers keep their digits and objects their order. Equal keys in
//! one object are refused, because two readers of one message must never see two different things.
//!
//! # Invariants
//!
//! - An object with duplicate keys is rejected, also if one is escaped:
//!   `json_object_rejects_duplicate_keys_in_any_spelling`.

mod distinct;
mod key;
mod object;
mod raw;
mod scan;
mod surrogate;
mod writer;

pub(crate) use self::distinct::DistinctKeys;
pub(crate) use self::key::ObjectKey;
pub(crate) use self::object::{COMMON_KEYS, ObjectBuilder};
pub use self::object::{JsonObject, MalformedJson};
pub use self::raw::{JsonKind, RawJson};
pub(crate) use self::scan::{JsonScanner, ScanError, ScannedKey};
pub(crate) use self::surrogate::replace_lone_surrogates;
pub use self::writer::JsonWriter;
