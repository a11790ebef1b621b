//! Command-line programs as tools of the Model Context Protocol.
//!
//! A [`Tree`] takes the command tree of a clap program: every leaf command is a tool, and a call of it becomes an argument
//! vector, without a shell.

mod policy;
mod tree;

pub use self::policy::{Decision, Policy, PolicyError, Rule};
pub use self::tree::{ArgvError, Leaf, Tree, TreeError};
