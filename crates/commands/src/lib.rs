//! Command-line programs as tools of the Model Context Protocol.
//!
//! A [`Tree`] takes the command tree of a clap program: every leaf command is a tool, and a call of it becomes an argument
//! vector, without a shell.

mod audit;
mod glob;
mod hints;
mod manifests;
mod policy;
mod program;
mod run;
mod tree;

pub use self::manifests::{ManifestLimits, Manifests};
pub use self::policy::{Decision, Policy, PolicyError, Rule};
pub use self::program::{Program, ProgramError, matches, parse};
pub use self::run::{Capture, Outputs};
pub use self::tree::{ArgvError, Leaf, Tree, TreeError};
