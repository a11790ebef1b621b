//! Runs a command for a call, as a child process or as a function of this one.
//!
//! # Invariants
//!
//! - Captured output is bounded: `gibibyte_of_command_output_uses_no_more_memory_than_its_limit`.

mod command_process;
mod function;
mod outcome;
mod output_store;

pub(crate) use self::command_process::CommandProcess;
pub(crate) use self::function::{CommandFunction, FunctionRun, run_function};
pub use self::function::{CommandOutputs, OutputCapture};
pub(crate) use self::outcome::{CommandEnding, ResultFormat};
pub(crate) use self::output_store::{OutputStore, OutputStoreProvider};
