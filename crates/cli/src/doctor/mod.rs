//! What is wrong with a server, and what only could be better.

mod finding;
mod parts;
mod schemas;

pub(crate) use self::finding::{Finding, Severity};
pub(crate) use self::parts::check_parts;
