//! Rendering of results, as text for users and as JSON for programs.
//!
//! # Invariants
//!
//! - Control sequences in tool results are escaped: `rendered_tool_results_never_control_the_terminal`.

mod content;
mod json;
mod media;
mod save;
mod value;

pub(crate) use self::content::{ContentPiece, pieces_of_call, pieces_of_contents, pieces_of_messages};
pub(crate) use self::json::{array, one_line, pretty};
pub(crate) use self::save::{SaveSelection, SaveTarget, save};
