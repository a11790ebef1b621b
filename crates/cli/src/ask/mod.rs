//! What servers ask, and who answers: what was given in advance, or a person at the terminal.

mod dialogue;
mod field;
mod form;
mod given;
mod sample;
mod url;

pub(crate) use self::dialogue::Dialogue;
pub(crate) use self::form::{Reply, fill};
pub(crate) use self::given::{Given, GivenAnswer};
pub(crate) use self::sample::play_model;
pub(crate) use self::url::visit;
