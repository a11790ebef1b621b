use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use clap::ArgMatches;
use trunkline_server::protocol::model::CallToolResult;
use trunkline_server::{Context, ToolError};
use trunkline_transport::process::{Captured, Exit, RunLimits};

use super::outcome::{Ending, Outcome, Reading};
use super::shelf::{Shelf, Spill};
use crate::audit;

/// A function that runs a command within this process.
pub(crate) type Function =
    Arc<dyn Fn(ArgMatches, &mut Outputs) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync>;

/// What a command that runs within this process writes to, in place of standard output and standard error.
#[derive(Debug)]
pub struct Outputs {
    /// What the caller gets.
    pub stdout: Capture,
    /// What the caller gets beside that, and if the command fails.
    pub stderr: Capture,
}

/// One output, kept up to its limit; what is written beyond that is counted.
#[derive(Debug)]
pub struct Capture {
    kept: Captured,
    limit: usize,
    spill: Spill,
    teller: Option<Teller>,
}

/// Tells a caller that wants progress of every line.
#[derive(Debug)]
struct Teller {
    context: Context,
    /// How many lines were told of, of both outputs.
    lines: Arc<AtomicU32>,
    partial: Vec<u8>,
    limit: usize,
}

impl Teller {
    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let room = self.limit.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(text.get(..room).unwrap_or(text));
            if ends {
                self.tell();
            }
        }
    }

    fn tell(&mut self) {
        let lines = self.lines.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        self.context.progress_with(lines, None, String::from_utf8_lossy(&self.partial));
        self.partial.clear();
    }
}

impl Write for Capture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.limit.saturating_sub(self.kept.bytes.len());
        let (kept, beyond) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.kept.bytes.extend_from_slice(kept);
        self.kept.dropped += beyond.len() as u64;
        if !beyond.is_empty() {
            self.spill.push(self.limit, beyond);
        }
        if let Some(teller) = &mut self.teller {
            teller.push(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Outputs {
    fn new(limits: &RunLimits, shelf: Option<&Arc<Shelf>>, context: &Context) -> Self {
        let lines = Arc::new(AtomicU32::new(0));
        let capture = |limit| Capture {
            kept: Captured::default(),
            limit,
            spill: Spill::new(shelf.cloned()),
            teller: context.wants_progress().then(|| Teller {
                context: context.clone(),
                lines: lines.clone(),
                partial: Vec::new(),
                limit: limits.line_bytes,
            }),
        };
        Self { stdout: capture(limits.stdout_bytes), stderr: capture(limits.stderr_bytes) }
    }

    /// Tells of lines that were not ended.
    fn finish(&mut self) {
        let tellers =
            [&mut self.stdout, &mut self.stderr].into_iter().filter_map(|output| output.teller.as_mut());
        tellers.filter(|teller| !teller.partial.is_empty()).for_each(Teller::tell);
    }
}

/// What is run, and how.
pub(crate) struct Run<'r> {
    pub(crate) function: Function,
    pub(crate) matches: ArgMatches,
    pub(crate) title: &'r str,
    pub(crate) limits: &'r RunLimits,
    pub(crate) reading: Reading,
    /// Where outputs go that are too long for a result.
    pub(crate) shelf: Option<&'r Arc<Shelf>>,
}

/// Runs a command within this process, on a thread for work that blocks.
///
/// Nothing can end the function before it ends by itself: a caller that goes, or a time that is over, only ends the wait for it.
pub(crate) async fn run_function(run: Run<'_>, context: &Context) -> Result<CallToolResult, ToolError> {
    let Run { function, matches, title, limits, reading, shelf } = run;
    let began = Instant::now();
    let mut outputs = Outputs::new(limits, shelf, context);
    let run = tokio::task::spawn_blocking(move || {
        let ended = function(matches, &mut outputs);
        if let Err(error) = &ended {
            // Writing to memory cannot fail.
            let _ = writeln!(outputs.stderr, "{error}");
        }
        outputs.finish();
        (ended.is_ok(), outputs)
    });
    let ran = match limits.within {
        Some(within) => tokio::time::timeout(within, run).await,
        None => Ok(run.await),
    };
    let (ending, outputs) = match ran {
        Ok(Ok((true, outputs))) => (Ending::By(Exit::Code(0)), Some(outputs)),
        Ok(Ok((false, outputs))) => (Ending::By(Exit::Code(1)), Some(outputs)),
        Ok(Err(error)) => return Err(ToolError::said(format!("`{title}` failed: {error}"))),
        Err(_) => (Ending::TimedOut(limits.within.unwrap_or_default()), None),
    };
    audit::ran(title, context, &ending, began.elapsed());
    let (stdout, stderr) = match outputs {
        Some(Outputs { stdout, stderr }) => ((stdout.kept, stdout.spill), (stderr.kept, stderr.spill)),
        None => Default::default(),
    };
    let outcome = Outcome { title, ending, stdout: stdout.0, stderr: stderr.0 };
    let links = outcome.keep([stdout.1, stderr.1], context);
    Ok(outcome.into_result(reading, links))
}
