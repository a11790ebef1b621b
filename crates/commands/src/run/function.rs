use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use clap::ArgMatches;
use trunkline_server::protocol::model::CallToolResult;
use trunkline_server::{Context, ToolError};
use trunkline_transport::process::{Captured, Exit, RunLimits};

use super::outcome::{Ending, Outcome, Reading};
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
}

impl Capture {
    fn new(limit: usize) -> Self {
        Self { kept: Captured::default(), limit }
    }
}

impl Write for Capture {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.limit.saturating_sub(self.kept.bytes.len());
        let kept = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        self.kept.bytes.extend_from_slice(kept);
        self.kept.dropped += (bytes.len() - kept.len()) as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a command within this process, on a thread for work that blocks.
///
/// Nothing can end the function before it ends by itself: a caller that goes, or a time that is over, only ends the wait for it.
pub(crate) async fn run_function(
    function: Function,
    matches: ArgMatches,
    title: &str,
    limits: &RunLimits,
    reading: Reading,
    context: &Context,
) -> Result<CallToolResult, ToolError> {
    let began = Instant::now();
    let (stdout, stderr) = (Capture::new(limits.stdout_bytes), Capture::new(limits.stderr_bytes));
    let run = tokio::task::spawn_blocking(move || {
        let mut outputs = Outputs { stdout, stderr };
        let ended = function(matches, &mut outputs);
        if let Err(error) = &ended {
            // Writing to memory cannot fail.
            let _ = writeln!(outputs.stderr, "{error}");
        }
        (ended.is_ok(), outputs)
    });
    let ran = match limits.within {
        Some(within) => tokio::time::timeout(within, run).await,
        None => Ok(run.await),
    };
    let (ending, outputs) = match ran {
        Ok(Ok((true, outputs))) => (Ending::By(Exit::Code(0)), outputs),
        Ok(Ok((false, outputs))) => (Ending::By(Exit::Code(1)), outputs),
        Ok(Err(error)) => return Err(ToolError::said(format!("`{title}` failed: {error}"))),
        Err(_) => {
            let nothing = Outputs { stdout: Capture::new(0), stderr: Capture::new(0) };
            (Ending::TimedOut(limits.within.unwrap_or_default()), nothing)
        }
    };
    audit::ran(title, context, &ending, began.elapsed());
    let outcome = Outcome { title, ending, stdout: outputs.stdout.kept, stderr: outputs.stderr.kept };
    Ok(outcome.into_result(reading))
}
