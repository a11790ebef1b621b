//! `trunkline top`: the overview of a hub in a terminal.
//!
//! The model follows the event stream of the hub, without messages, and the reports of its servers. The view has what the
//! user chose, and the screen draws both.
//!
//! # Invariants
//!
//! - Texts of servers and clients never control the terminal: `hostile_texts_are_escaped_on_every_screen`.
//! - What is kept is bounded: `model_keeps_a_bounded_number_of_calls_and_clients`.
//! - The terminal is restored at every end: `terminal_is_restored_after_keys_and_signals`.

mod call_filter;
mod details;
mod model;
mod palette;
mod screen;
mod server_table;
mod snapshot;
mod statistics;
mod terminal_session;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use self::model::TopModel;
pub(crate) use self::palette::Palette;
pub(crate) use self::screen::draw;
pub(crate) use self::snapshot::snapshot;
pub(crate) use self::terminal_session::TerminalSession;
pub(crate) use self::view::{KeyOutcome, TopView};
