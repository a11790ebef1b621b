//! Terminal output, escaped so that a peer cannot control the terminal.
//!
//! # Invariants
//!
//! - Control sequences of a peer are escaped: `escaped_peer_text_never_contains_control_characters`.

mod escape;
mod output_layout;
mod progress;
mod screen;
mod style;
mod table;
mod width;

pub(crate) use self::escape::{escape_line, escape_text, first_line, is_unsafe_char};
pub(crate) use self::output_layout::OutputLayout;
pub(crate) use self::progress::CallProgress;
pub(crate) use self::screen::StderrScreen;
pub(crate) use self::style::TextStyle;
pub(crate) use self::table::{table, table_keeping_first_column};
pub(crate) use self::width::{
    DEFAULT_COLUMNS, display_width, fit_lines, pad, terminal_columns, truncate_to_width, wrap,
};
