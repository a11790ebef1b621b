//! The terminal: what a person sees, and what a peer can never make of it.

mod progress;
mod screen;
mod sheet;
mod style;
mod table;
mod visible;
mod width;

pub(crate) use self::progress::Stage;
pub(crate) use self::screen::Screen;
pub(crate) use self::sheet::Sheet;
pub(crate) use self::style::Style;
pub(crate) use self::table::{table, table_by_first};
pub(crate) use self::visible::{first_line, steers, visible, visible_line};
pub(crate) use self::width::{columns_of, fit, pad, terminal_columns, wrap};
