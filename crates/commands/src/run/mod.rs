//! Running a command for a call, as a child process or as a function of this one.

mod child;
mod function;
mod outcome;

pub(crate) use self::child::Child;
pub use self::function::{Capture, Outputs};
pub(crate) use self::function::{Function, run_function};
pub(crate) use self::outcome::{Ending, Reading};
