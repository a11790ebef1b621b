//! Child processes: what to start, how it is watched over, and how it ends.
//!
//! There are two ways to use a program. [`Process::spawn`] starts a server and gives the pipes to it; [`run`] starts
//! a command, waits for it and gives back what it printed. Both ways hold to the same rules:
//!
//! - A child has a process group of its own, a minimal environment with what is listed, and no descriptor of ours but its
//!   three standard ones.
//! - It ends as a group: what it started ends with it, and it is always reaped.
//! - Nothing outlives us. On Linux that is true even if we are killed: a guard, one small process for all children, sees
//!   that we are gone and ends every group.
//!
//! # What is ended
//! All members of the child's group, and those of its descendants that left the group while their parents were still
//! there when we ended them. On Linux also every process that still has one of the child's output pipes as a standard
//! descriptor, wherever it went. What is not caught is a descendant that made itself a daemon with care: one that left
//! the group, whose parents ended before, and that closed its standard output and error.
//!
//! On other Unix systems a killed parent leaves its children to notice that their input is closed. On Windows only the
//! child itself is ended, not what it started.

mod census;
mod command;
mod ending;
mod environment;
mod error;
mod exit;
mod find;
#[cfg(target_os = "linux")]
mod guard;
mod handle;
mod noise;
mod observe;
mod output;
mod run;
mod supervise;
mod system;
mod tail;

pub use self::census::{live, settled};
pub use self::command::{Command, CommandLineError};
pub use self::ending::Grace;
pub use self::error::{Ended, SpawnError};
pub use self::exit::{Cause, Exit};
pub use self::handle::{ChildPipes, ChildWatch, Observer, Process};
pub use self::noise::Noise;
pub use self::output::{Captured, Line, Source, Watcher};
pub use self::run::{Finished, RunLimits, run, run_observed, run_watched};
pub use self::supervise::Phase;
pub use self::system::{Reader as PipeReader, Writer as PipeWriter};
pub use self::tail::Tail;
