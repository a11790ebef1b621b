use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::Mutex;

use clap::{Args, ValueEnum};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::exit::Failure;

/// What is logged, how and where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logging")]
pub(crate) struct LogArgs {
    /// error, warn, info, debug or trace; else info, over stdio warn
    #[arg(long, value_name = "LEVEL", value_enum, hide_possible_values = true)]
    log_level: Option<Level>,
    /// The form of a log line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    log_format: Format,
    /// Append the log to a file instead of standard error
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<Level> for LevelFilter {
    fn from(level: Level) -> Self {
        match level {
            Level::Error => Self::ERROR,
            Level::Warn => Self::WARN,
            Level::Info => Self::INFO,
            Level::Debug => Self::DEBUG,
            Level::Trace => Self::TRACE,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl LogArgs {
    /// Reports whether standard error carries JSON lines and so nothing else.
    pub(crate) fn stderr_is_json(&self) -> bool {
        self.log_format == Format::Json && self.log_file.is_none()
    }

    /// Begins to log.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn begin(&self, default: Level) -> Result<(), Failure> {
        let writer = match &self.log_file {
            None => BoxMakeWriter::new(std::io::stderr),
            Some(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path).map_err(|error| {
                    Failure::configuration(format!("log file {} cannot be opened: {error}", path.display()))
                        .hint("give a file in a folder that exists and that you may write to")
                })?;
                BoxMakeWriter::new(Mutex::new(file))
            }
        };
        let level = LevelFilter::from(self.log_level.unwrap_or(default));
        // A log line that cannot be written is lost; telling so would need the same standard error.
        let builder =
            tracing_subscriber::fmt().with_max_level(level).with_writer(writer).log_internal_errors(false);
        match self.log_format {
            Format::Text => builder.with_target(false).init(),
            Format::Json => builder.json().flatten_event(true).init(),
        }
        Ok(())
    }
}
