use std::ffi::OsString;
use std::time::Instant;

use trunkline_server::protocol::model::CallToolResult;
use trunkline_server::{Context, ToolError};
use trunkline_transport::process::{self, Command, RunLimits};

use super::outcome::{Ending, Outcome, Reading};
use crate::audit;

/// A command that is ready to be run as a process of its own.
#[derive(Debug)]
pub(crate) struct Child {
    /// What it is called in what is said about it.
    pub(crate) title: String,
    pub(crate) command: Command,
    pub(crate) limits: RunLimits,
    pub(crate) reading: Reading,
}

impl Child {
    /// Sets what every command has: it writes for a machine, not for a terminal.
    pub(crate) fn plain(command: Command) -> Command {
        command.env("NO_COLOR", "1").env("TERM", "dumb")
    }

    /// Runs the command for a call, and tells the caller of its lines if that wants progress.
    ///
    /// Dropping the future ends the command and all that it started.
    pub(crate) async fn run(self, context: &Context) -> Result<CallToolResult, ToolError> {
        let began = Instant::now();
        let finished = if context.wants_progress() {
            let mut lines = 0_u32;
            let tell = |line: process::Line<'_>| {
                lines = lines.saturating_add(1);
                context.progress_with(lines, None, line.text);
            };
            process::run_observed(&self.command, &self.limits, tell).await
        } else {
            process::run(&self.command, &self.limits).await
        };
        let finished = finished.map_err(|error| {
            audit::failed(&self.title, context, &error);
            ToolError::said(error)
        })?;
        let ending = Ending::of(&finished, &self.limits);
        audit::ran(&self.title, context, &ending, began.elapsed());
        let outcome =
            Outcome { title: &self.title, ending, stdout: finished.stdout, stderr: finished.stderr };
        Ok(outcome.into_result(self.reading))
    }

    /// Adds the words of a command line.
    pub(crate) fn with_words(mut self, words: impl IntoIterator<Item = OsString>) -> Self {
        self.command = self.command.args(words);
        self
    }
}
