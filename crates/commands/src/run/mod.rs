//! Runs a command for a call, as a child process or as a function of this one.
//!
//! # Invariants
//!
//! - Captured output is bounded: `a_gibibyte_of_output_costs_at_most_its_limit`.

mod command_process;
mod function;
mod outcome;
mod output_store;

pub(crate) use self::command_process::CommandProcess;
pub(crate) use self::function::{CommandFunction, FunctionRun, run_function};
pub use self::function::{CommandOutputs, OutputCapture};
pub(crate) use self::outcome::{CommandEnding, ResultFormat};
pub(crate) use self::output_store::{OutputStore, OutputStoreProvider};
