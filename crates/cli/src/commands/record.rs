use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use serde_json::{Value, json};
use tokio::io::AsyncBufReadExt as _;
use trunkline_hub::events::RecordHeader;

use super::manage::{FileArgs, HubArgs};
use crate::admin::AdminClient;
use crate::connect::{in_runtime, print_stdout};
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::signals::Signals;
use crate::values::{parse_duration, parse_size};

/// Record what goes through the running hub
#[derive(Debug, Args)]
#[command(after_help = "Records messages on both sides of the hub, calls, clients, and states and logs\n\
of servers, with secrets masked, until Ctrl-C. The format: `docs/record.md`.\n\n\
Examples:\n  trunkline record -o session.jsonl\n  trunkline record --for 10m -o session.jsonl\n  \
trunkline record | jq -c 'select(.kind == \"call_ended\")'")]
pub(crate) struct RecordArgs {
    /// File to write, mode 0600 [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Stop after this time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    time: Option<Duration>,
    /// Maximum size of the file
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "256MiB")]
    max_size: usize,
    #[command(flatten)]
    hub: HubArgs,
    #[command(flatten)]
    file: FileArgs,
}

/// Records until the time or the size is reached, the hub ends, or Ctrl-C.
///
/// # Errors
/// No hub runs, or the file cannot be written.
pub(crate) fn run(args: &RecordArgs) -> Result<(), CliFailure> {
    in_runtime(args.file.json, async |signals| record(args, signals).await)
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordEnd {
    Interrupted,
    Time,
    Size,
    HubGone,
}

impl RecordEnd {
    fn as_str(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Time => "time",
            Self::Size => "size",
            Self::HubGone => "hub_gone",
        }
    }
}

async fn record(args: &RecordArgs, signals: &mut Signals) -> Result<(), CliFailure> {
    let path = args.file.path_or_new();
    let hub = args.hub.find(&path)?.ok_or_else(|| {
        let message = format!("no hub is running from {}", path.display());
        CliFailure::new(ExitReason::Unreachable, message).hint("start one with `trunkline serve`")
    })?;
    let mut lines = events(&hub).await?;
    let mut file = RecordFile::create(args.output.as_deref(), args.max_size)?;
    if let Some(output) = &args.output {
        print_stderr(&format!("recording to {}; Ctrl-C ends it\n", output.display()));
    }
    let end = {
        let limit = async {
            match args.time {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = signals.next() => Ok(RecordEnd::Interrupted),
            () = limit => Ok(RecordEnd::Time),
            end = copy_events(&mut lines, &mut file) => end,
        }
    };
    file.finish()?;
    report(args, &file, end?)
}

#[cfg(unix)]
async fn events(hub: &AdminClient) -> Result<crate::admin::EventLines, CliFailure> {
    Ok(hub.events().await?)
}

#[cfg(not(unix))]
async fn events(_: &AdminClient) -> Result<tokio::io::BufReader<tokio::io::Empty>, CliFailure> {
    Err(CliFailure::new(ExitReason::Unreachable, "a running hub can be recorded only on Unix"))
}

/// Copies whole lines, so that an interruption never leaves a part of one.
async fn copy_events(
    lines: &mut (impl tokio::io::AsyncBufRead + Unpin),
    file: &mut RecordFile,
) -> Result<RecordEnd, CliFailure> {
    let mut line = Vec::new();
    loop {
        let read = lines.read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(1..)) || line.last() != Some(&b'\n') {
            return Ok(RecordEnd::HubGone);
        }
        if !file.write_event(&line)? {
            return Ok(RecordEnd::Size);
        }
        line.clear();
    }
}

fn report(args: &RecordArgs, file: &RecordFile, end: RecordEnd) -> Result<(), CliFailure> {
    let Some(output) = &args.output else { return Ok(()) };
    if args.file.json {
        let report = json!({
            "file": output.display().to_string(),
            "events": file.events,
            "dropped": file.dropped,
            "bytes": file.bytes,
            "ended": end.as_str(),
        });
        return print_stdout(&format!("{report}\n"));
    }
    let why = match end {
        RecordEnd::Interrupted => "",
        RecordEnd::Time => "; the time is over",
        RecordEnd::Size => "; the file has its maximum size (`--max-size`)",
        RecordEnd::HubGone => "; the hub has closed the connection",
    };
    let dropped = match file.dropped {
        0 => String::new(),
        dropped => format!(", {dropped} dropped"),
    };
    let (events, bytes) = (file.events, file.bytes);
    print_stderr(&format!(
        "recorded {events} events{dropped} ({bytes} bytes) to {}{why}\n",
        output.display()
    ));
    Ok(())
}

/// The file of a recording, within its size.
struct RecordFile {
    target: Box<dyn Write>,
    most: usize,
    bytes: usize,
    events: u64,
    dropped: u64,
}

impl RecordFile {
    fn create(path: Option<&Path>, most: usize) -> Result<Self, CliFailure> {
        let target: Box<dyn Write> = match path {
            Some(path) => Box::new(io::BufWriter::new(create_private(path).map_err(|error| {
                CliFailure::configuration(format!("cannot write {}: {error}", path.display()))
            })?)),
            None => Box::new(io::stdout()),
        };
        let mut file = Self { target, most, bytes: 0, events: 0, dropped: 0 };
        file.write(&format!("{}\n", RecordHeader::now(env!("CARGO_PKG_VERSION")).to_line()).into_bytes())?;
        Ok(file)
    }

    /// Writes a line; returns false if there is no room for it.
    fn write_event(&mut self, line: &[u8]) -> Result<bool, CliFailure> {
        if self.bytes + line.len() > self.most {
            return Ok(false);
        }
        self.write(line)?;
        self.events += 1;
        let event = serde_json::from_slice::<Value>(line).unwrap_or_default();
        if event.get("kind").and_then(Value::as_str) == Some("dropped") {
            self.dropped += event.get("count").and_then(Value::as_u64).unwrap_or(0);
        }
        Ok(true)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CliFailure> {
        self.bytes += bytes.len();
        self.target.write_all(bytes).and_then(|()| self.target.flush()).map_err(|error| write_failure(&error))
    }

    fn finish(&mut self) -> Result<(), CliFailure> {
        self.target.flush().map_err(|error| write_failure(&error))
    }
}

fn write_failure(error: &io::Error) -> CliFailure {
    CliFailure::new(ExitReason::Failed, format!("cannot write the recording: {error}"))
}

/// Creates a file that only its owner can read, also if it was there with another mode.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    // Only now, so that no other user can have opened what is written.
    file.set_len(0)?;
    Ok(file)
}
