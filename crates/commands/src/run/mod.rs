//! Running a command for a call, as a child process or as a function of this one.

mod child;
mod function;
mod outcome;
mod shelf;

pub(crate) use self::child::Child;
pub use self::function::{Capture, Outputs};
pub(crate) use self::function::{Function, Run, run_function};
pub(crate) use self::outcome::{Ending, Reading};
pub(crate) use self::shelf::{Shelf, ShelfProvider};
