//! JSON that is carried, not rewritten: raw values, ordered members, a writer and a depth guard.
//!
//! A value that nobody changes is copied verbatim, so numbers keep their digits and objects their order. Equal keys in
//! one object are refused, because two readers of one message must never see two different things.

mod guard;
mod members;
mod raw;
mod writer;

pub use self::guard::nests_deeper_than;
pub(crate) use self::members::{KeySeed, MembersSeed, TextSeed, shared_key};
pub use self::members::{MalformedJson, Members};
pub use self::raw::{JsonKind, Raw};
pub use self::writer::Writer;
