use std::ffi::OsString;
use std::sync::Arc;
use std::time::Instant;

use trunkline_server::protocol::model::CallToolResult;
use trunkline_server::{Context, ToolError};
use trunkline_transport::process::{self, Command, Line, RunLimits, Source, Watcher};

use super::outcome::{Ending, Outcome, Reading};
use super::shelf::{Shelf, Spill};
use crate::audit;

/// A command that is ready to be run as a process of its own.
#[derive(Debug)]
pub(crate) struct Child {
    /// What it is called in what is said about it.
    pub(crate) title: String,
    pub(crate) command: Command,
    pub(crate) limits: RunLimits,
    pub(crate) reading: Reading,
    /// Where outputs go that are too long for a result.
    pub(crate) shelf: Option<Arc<Shelf>>,
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
        let mut attendant = Attendant {
            title: &self.title,
            context,
            limits: &self.limits,
            lines: 0,
            stdout: Spill::new(self.shelf.clone()),
            stderr: Spill::new(self.shelf.clone()),
        };
        let finished = process::run_watched(&self.command, &self.limits, &mut attendant).await;
        let Attendant { stdout, stderr, .. } = attendant;
        let finished = finished.map_err(|error| {
            audit::failed(&self.title, context, &error);
            ToolError::said(error)
        })?;
        let ending = Ending::of(&finished, &self.limits);
        audit::ran(&self.title, context, &ending, began.elapsed());
        let outcome =
            Outcome { title: &self.title, ending, stdout: finished.stdout, stderr: finished.stderr };
        let links = outcome.keep([stdout, stderr], context);
        Ok(outcome.into_result(self.reading, links))
    }

    /// Adds the words of a command line.
    pub(crate) fn with_words(mut self, words: impl IntoIterator<Item = OsString>) -> Self {
        self.command = self.command.args(words);
        self
    }
}

/// What looks after a command while it runs.
struct Attendant<'c> {
    title: &'c str,
    context: &'c Context,
    limits: &'c RunLimits,
    lines: u32,
    stdout: Spill,
    stderr: Spill,
}

impl Watcher for Attendant<'_> {
    fn wants_lines(&self) -> bool {
        self.context.wants_progress()
    }

    fn started(&mut self, id: u32) {
        tracing::debug!(command = self.title, pid = id, "started");
    }

    fn line(&mut self, line: Line<'_>) {
        self.lines = self.lines.saturating_add(1);
        self.context.progress_with(self.lines, None, line.text);
    }

    fn beyond(&mut self, source: Source, bytes: &[u8]) {
        match source {
            Source::Stdout => self.stdout.push(self.limits.stdout_bytes, bytes),
            Source::Stderr => self.stderr.push(self.limits.stderr_bytes, bytes),
        }
    }
}
