use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use clap::ArgMatches;
use trunkline_server::protocol::model::CallToolResult;
use trunkline_server::{Context, ToolError};
use trunkline_transport::process::{CapturedOutput, ProcessExit, RunLimits};

use super::outcome::{CommandEnding, CommandOutcome, ResultFormat};
use super::output_store::{OutputSpill, OutputStore};
use crate::audit;

/// A function that runs a command within this process.
pub(crate) type CommandFunction =
    Arc<dyn Fn(ArgMatches, &mut CommandOutputs) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync>;

/// The outputs of a command that runs within this process, in place of standard output and standard error.
#[derive(Debug)]
pub struct CommandOutputs {
    /// The output for the caller.
    pub stdout: OutputCapture,
    /// The error output, also for the caller, in particular if the command fails.
    pub stderr: OutputCapture,
}

/// One output, captured up to its limit; bytes beyond it are counted and spilled.
#[derive(Debug)]
pub struct OutputCapture {
    captured: CapturedOutput,
    limit: usize,
    spill: OutputSpill,
    reporter: Option<ProgressReporter>,
}

/// Reports every line as progress.
#[derive(Debug)]
struct ProgressReporter {
    context: Context,
    /// The number of reported lines, of both outputs.
    lines: Arc<AtomicU32>,
    partial: Vec<u8>,
    limit: usize,
}

impl ProgressReporter {
    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let remaining = self.limit.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(text.get(..remaining).unwrap_or(text));
            if ends {
                self.report_line();
            }
        }
    }

    fn report_line(&mut self) {
        let lines = self.lines.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        self.context.progress_with(lines, None, String::from_utf8_lossy(&self.partial));
        self.partial.clear();
    }
}

impl Write for OutputCapture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let remaining = self.limit.saturating_sub(self.captured.bytes.len());
        let (captured, beyond) = bytes.split_at_checked(remaining).unwrap_or((bytes, &[]));
        self.captured.bytes.extend_from_slice(captured);
        self.captured.dropped += beyond.len() as u64;
        if !beyond.is_empty() {
            self.spill.push(self.limit, beyond);
        }
        if let Some(reporter) = &mut self.reporter {
            reporter.push(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CommandOutputs {
    fn new(limits: &RunLimits, output_store: Option<&Arc<OutputStore>>, context: &Context) -> Self {
        let lines = Arc::new(AtomicU32::new(0));
        let capture = |limit| OutputCapture {
            captured: CapturedOutput::default(),
            limit,
            spill: OutputSpill::new(output_store.cloned()),
            reporter: context.wants_progress().then(|| ProgressReporter {
                context: context.clone(),
                lines: lines.clone(),
                partial: Vec::new(),
                limit: limits.line_bytes,
            }),
        };
        Self { stdout: capture(limits.stdout_bytes), stderr: capture(limits.stderr_bytes) }
    }

    /// Reports the last lines without a newline.
    fn finish(&mut self) {
        let reporters =
            [&mut self.stdout, &mut self.stderr].into_iter().filter_map(|output| output.reporter.as_mut());
        reporters.filter(|reporter| !reporter.partial.is_empty()).for_each(ProgressReporter::report_line);
    }
}

/// The function to run, with its options.
pub(crate) struct FunctionRun<'r> {
    pub(crate) function: CommandFunction,
    pub(crate) matches: ArgMatches,
    pub(crate) title: &'r str,
    pub(crate) limits: &'r RunLimits,
    pub(crate) result_format: ResultFormat,
    /// The store for outputs that are too long for a result.
    pub(crate) output_store: Option<&'r Arc<OutputStore>>,
}

/// Runs a command within this process, on a blocking thread.
///
/// The function cannot be cancelled: if the caller drops the call, or the timeout expires, only the wait for it
/// ends.
pub(crate) async fn run_function(
    run: FunctionRun<'_>,
    context: &Context,
) -> Result<CallToolResult, ToolError> {
    let FunctionRun { function, matches, title, limits, result_format, output_store } = run;
    let began = Instant::now();
    let mut outputs = CommandOutputs::new(limits, output_store, context);
    let run = tokio::task::spawn_blocking(move || {
        let ended = function(matches, &mut outputs);
        if let Err(error) = &ended {
            // Writing to memory cannot fail.
            let _ = writeln!(outputs.stderr, "{error}");
        }
        outputs.finish();
        (ended.is_ok(), outputs)
    });
    let ran = match limits.timeout {
        Some(within) => tokio::time::timeout(within, run).await,
        None => Ok(run.await),
    };
    let (ending, outputs) = match ran {
        Ok(Ok((true, outputs))) => (CommandEnding::Exited(ProcessExit::Code(0)), Some(outputs)),
        Ok(Ok((false, outputs))) => (CommandEnding::Exited(ProcessExit::Code(1)), Some(outputs)),
        Ok(Err(error)) => return Err(ToolError::new(format!("`{title}` failed: {error}"))),
        Err(_) => (CommandEnding::TimedOut(limits.timeout.unwrap_or_default()), None),
    };
    audit::log_run(title, context, &ending, began.elapsed());
    let (stdout, stderr) = match outputs {
        Some(CommandOutputs { stdout, stderr }) => {
            ((stdout.captured, stdout.spill), (stderr.captured, stderr.spill))
        }
        None => Default::default(),
    };
    let outcome = CommandOutcome { title, ending, stdout: stdout.0, stderr: stderr.0 };
    let links = outcome.store_overflow([stdout.1, stderr.1], context);
    Ok(outcome.into_result(result_format, links))
}
