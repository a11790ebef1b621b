//! Command-line programs as tools of the Model Context Protocol.
//!
//! The author of a clap program adds one line, [`parse`], and the program serves its own commands. Any other
//! program is described in a few lines of configuration: [`CommandConfig`]. In both cases a call becomes an
//! argument vector, without a shell, and no value can become an option.
//!
//! # Invariants
//!
//! - Only `parse` and `matches` print and exit, as their counterparts of clap do; everything else returns errors.
//! - A cancelled call leaves no process: `thousand_cancelled_command_calls_leave_no_process`.
//! - A hidden command is answered like one that does not exist: `hidden_tool_call_is_answered_like_an_unknown_tool`.

mod audit;
mod described;
mod glob;
mod hints;
mod manifests;
mod policy;
mod program;
mod run;
mod tree;

pub use self::described::{
    ArgumentConfig, CommandConfig, CommandEnvironment, CommandFault, DescribedCommand, DescribedError,
    DescribedSet, ManifestsConfig, PolicyConfig, PreparedCommand, schemas,
};
pub use self::manifests::{ManifestLimits, Manifests};
pub use self::policy::{Policy, PolicyDecision, PolicyError, PolicyRule};
pub use self::program::{Program, ProgramError, matches, parse};
pub use self::run::{CommandOutputs, OutputCapture};
pub use self::tree::{ArgvError, CommandTree, LeafCommand, TreeError};
