use std::backtrace::{Backtrace, BacktraceStatus};
use std::fs::OpenOptions;
use std::panic::PanicHookInfo;
use std::path::PathBuf;
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::exit::{CliFailure, ExitReason};
use crate::log_limit::LogLimit;
use crate::log_line::{BoundedLines, LineSyntax};

/// What is logged, how and where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LogArgs {
    /// error, warn, info, debug or trace [default: info; warn for stdio]
    #[arg(long, value_name = "LEVEL", value_enum, hide_possible_values = true)]
    log_level: Option<LogLevel>,
    /// Format of log lines
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Append the log to this file instead of stderr
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl LogArgs {
    /// Reports whether standard error carries JSON lines and so nothing else.
    pub(crate) fn stderr_is_json(&self) -> bool {
        self.log_format == LogFormat::Json && self.log_file.is_none()
    }

    /// Begins to log.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn init(&self, default: LogLevel) -> Result<(), CliFailure> {
        let writer = match &self.log_file {
            None => BoxMakeWriter::new(std::io::stderr),
            Some(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path).map_err(|error| {
                    CliFailure::configuration(format!("cannot open log file {}: {error}", path.display()))
                        .hint("use a file in an existing folder that you can write to")
                })?;
                BoxMakeWriter::new(Mutex::new(file))
            }
        };
        let level = LevelFilter::from(self.log_level.unwrap_or(default));
        // A log line that cannot be written is lost; reporting it would need the same standard error.
        let builder =
            tracing_subscriber::fmt().with_max_level(level).with_writer(writer).log_internal_errors(false);
        let limit = LogLimit::start().map_err(|error| {
            CliFailure::new(ExitReason::Failed, format!("the log cannot be started: {error}"))
        })?;
        match self.log_format {
            LogFormat::Text => {
                let bounded = |inner| BoundedLines { inner, syntax: LineSyntax::Text };
                builder.with_target(false).map_event_format(bounded).finish().with(limit).init();
            }
            LogFormat::Json => {
                let bounded = |inner| BoundedLines { inner, syntax: LineSyntax::Json };
                builder.json().flatten_event(true).map_event_format(bounded).finish().with(limit).init();
            }
        }
        std::panic::set_hook(Box::new(log_panic));
        Ok(())
    }
}

/// Logs the location of a panic, in the format of every other line. The message is omitted: it may contain what a
/// client sent. `RUST_BACKTRACE` adds a backtrace.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let trace = Backtrace::capture();
    match trace.status() {
        BacktraceStatus::Captured => tracing::error!(place, thread, backtrace = %trace, "panicked"),
        _ => tracing::error!(place, thread, "panicked"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{self, Write};
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    pub(crate) struct LogSink(pub(crate) Arc<Mutex<Vec<u8>>>);

    impl Write for LogSink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn panic_log_line_has_the_location_without_the_message() {
        let heard = LogSink::default();
        let writer = heard.clone();
        let log = tracing_subscriber::fmt().json().with_writer(move || writer.clone()).finish();
        // The hook is global: panics of other threads go to the previous hook.
        let before = Arc::new(std::panic::take_hook());
        let (ours, others) = (std::thread::current().id(), before.clone());
        std::panic::set_hook(Box::new(move |panic| match std::thread::current().id() == ours {
            true => log_panic(panic),
            false => others(panic),
        }));
        let caught = tracing::subscriber::with_default(log, || {
            std::panic::catch_unwind(|| panic!("canary of a secret"))
        });
        drop(std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| before(panic)));
        assert!(caught.is_err());
        let heard = heard.0.lock().clone();
        let line: serde_json::Value = serde_json::from_slice(&heard).unwrap();
        let place = line["fields"]["place"].as_str().unwrap();
        assert!(place.contains("logging.rs:"), "{place}");
        assert_eq!((&line["level"], &line["fields"]["message"]), (&"ERROR".into(), &"panicked".into()));
        assert!(!line["fields"].to_string().contains("canary"), "{line}");
    }
}
