use std::ffi::OsString;
use std::sync::Arc;
use std::time::Instant;

use trunkline_server::protocol::model::CallToolResult;
use trunkline_server::{Context, ToolError};
use trunkline_transport::process::{self, Command, CommandObserver, OutputLine, OutputStream, RunLimits};

use super::outcome::{CommandEnding, CommandOutcome, ResultFormat};
use super::output_store::{OutputSpill, OutputStore};
use crate::audit;

/// A command that is ready to run as a child process.
#[derive(Debug)]
pub(crate) struct CommandProcess {
    /// Its name in results and logs.
    pub(crate) title: String,
    pub(crate) command: Command,
    pub(crate) limits: RunLimits,
    pub(crate) result_format: ResultFormat,
    /// The store for outputs that are too long for a result.
    pub(crate) output_store: Option<Arc<OutputStore>>,
}

impl CommandProcess {
    /// Sets the environment of every command: no colour and no terminal.
    pub(crate) fn without_terminal(command: Command) -> Command {
        command.env("NO_COLOR", "1").env("TERM", "dumb")
    }

    /// Runs the command for a call, and reports its output lines as progress if the caller wants it.
    ///
    /// Dropping the future kills the command and its children.
    pub(crate) async fn run(self, context: &Context) -> Result<CallToolResult, ToolError> {
        let began = Instant::now();
        let mut observer = RunObserver {
            title: &self.title,
            context,
            limits: &self.limits,
            lines: 0,
            stdout: OutputSpill::new(self.output_store.clone()),
            stderr: OutputSpill::new(self.output_store.clone()),
        };
        let finished = process::run_with_observer(&self.command, &self.limits, &mut observer).await;
        let RunObserver { stdout, stderr, .. } = observer;
        let finished = finished.map_err(|error| {
            audit::log_failure(&self.title, context, &error);
            ToolError::new(error)
        })?;
        let ending = CommandEnding::new(&finished, &self.limits);
        audit::log_run(&self.title, context, &ending, began.elapsed());
        let outcome =
            CommandOutcome { title: &self.title, ending, stdout: finished.stdout, stderr: finished.stderr };
        let links = outcome.store_overflow([stdout, stderr], context);
        Ok(outcome.into_result(self.result_format, links))
    }

    /// Adds arguments.
    pub(crate) fn with_words(mut self, words: impl IntoIterator<Item = OsString>) -> Self {
        self.command = self.command.args(words);
        self
    }
}

/// Observes a command while it runs.
struct RunObserver<'c> {
    title: &'c str,
    context: &'c Context,
    limits: &'c RunLimits,
    lines: u32,
    stdout: OutputSpill,
    stderr: OutputSpill,
}

impl CommandObserver for RunObserver<'_> {
    fn wants_lines(&self) -> bool {
        self.context.wants_progress()
    }

    fn started(&mut self, id: u32) {
        tracing::debug!(command = self.title, pid = id, "started");
    }

    fn line(&mut self, line: OutputLine<'_>) {
        self.lines = self.lines.saturating_add(1);
        self.context.progress_with(self.lines, None, line.text);
    }

    fn overflow(&mut self, source: OutputStream, bytes: &[u8]) {
        match source {
            OutputStream::Stdout => self.stdout.push(self.limits.stdout_bytes, bytes),
            OutputStream::Stderr => self.stderr.push(self.limits.stderr_bytes, bytes),
        }
    }
}
