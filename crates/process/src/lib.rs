//! Child processes: starting, supervision and termination.
//!
//! There are two entry points. [`ServerProcess::spawn`] starts a server and returns its pipes; [`run`] starts a
//! command, waits for it and returns its output. Both follow the same rules:
//!
//! - A child has a process group of its own, a minimal environment with the variables set on the command, and no file
//!   descriptors but its three standard ones.
//! - Its whole group is terminated with it, and it is always reaped.
//! - No child outlives this process. On Linux that holds even if this process is killed: the reaper, one small
//!   process for all children, detects it and terminates every group.
//!
//! # What is terminated
//! All members of the child's group, and those of its descendants that left the group, if their parents were still
//! running at the termination. On Linux also every process that still has one of the child's output pipes as a
//! standard descriptor, in whatever group or session. A descendant escapes only if it daemonized carefully: it left
//! the group, its parents exited earlier, and it closed its standard output and error.
//!
//! On other Unix systems, if this process is killed, its children only notice that their standard input is closed. On
//! Windows only the child itself is terminated, not its descendants.
//!
//! # Invariants
//!
//! - No child survives if this process is killed while it starts and stops children:
//!   `killing_the_parent_during_spawns_and_exits_leaves_no_child`.
//! - A child ends with its handle or future, and leaves no open descriptor:
//!   `thousand_cancelled_runs_leak_no_process_and_no_descriptor`,
//!   `dropping_the_handle_terminates_the_server_in_the_background`.
//! - A child inherits no descriptor but its three standard streams: `child_has_only_its_three_standard_descriptors`.
//! - Captured output and partial lines are bounded: `gibibyte_of_output_uses_at_most_the_capture_limit`,
//!   `endless_stdout_line_uses_at_most_the_limit_and_the_server_continues`.
//! - The reaper kills only process groups of this process: `reaper_targets_are_group_members_and_children_of_targets`.

mod child_counter;
mod command;
mod desktop;
mod environment;
mod error;
mod exit;
mod find;
mod handle;
mod line_splitter;
mod output;
#[cfg(target_os = "linux")]
mod reaper;
mod run;
mod stderr_tail;
mod stdout_noise;
mod supervise;
mod system;
mod termination;

pub use self::child_counter::{child_count, wait_for_background_exits};
pub use self::command::{Command, CommandLineError};
pub use self::desktop::open_page;
pub use self::error::{ExitReport, SpawnError};
pub use self::exit::{ExitCause, ProcessExit};
pub use self::handle::{ChildPipes, ChildWatch, LineCallback, ServerProcess};
pub use self::output::{CapturedOutput, CommandObserver, OutputLine, OutputStream};
pub use self::run::{RunLimits, RunOutput, run, run_with_lines, run_with_observer};
pub use self::stderr_tail::StderrTail;
pub use self::stdout_noise::StdoutNoise;
pub use self::supervise::ProcessPhase;
pub use self::system::{PipeReader, PipeWriter};
pub use self::termination::GracePeriods;
