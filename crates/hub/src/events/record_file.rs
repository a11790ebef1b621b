//! Record files: a header and events, as lines of JSON. See `docs/record.md`.

use std::io::{self, BufRead};

use serde::{Deserialize, Serialize};

use super::event::{EventParseError, HubEvent};

/// The version of the format.
pub const RECORD_VERSION: u64 = 1;

/// The longest line that is read.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// The first line of a record file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordHeader {
    /// The version of the format.
    pub trunkline_record: u64,
    /// When the recording began, as in RFC 3339.
    pub started: String,
    /// The version of the program that wrote it.
    pub version: String,
}

/// Why a record file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordFileError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The first line is no header.
    #[error("it is not a record file: the first line has no `trunkline_record`")]
    NoHeader,
    /// A later version wrote it.
    #[error("it is a record file of format {0}; this version reads up to format {RECORD_VERSION}")]
    Newer(u64),
    /// A line is too long.
    #[error("line {0} is longer than {MAX_LINE_BYTES} bytes")]
    TooLong(usize),
    /// A line is no event.
    #[error("line {line}: {error}")]
    Line {
        /// The number of the line.
        line: usize,
        /// Why it is none.
        error: EventParseError,
    },
}

impl RecordHeader {
    /// Makes the header of a recording that begins now.
    pub fn now(version: impl Into<String>) -> Self {
        let started = super::event::EventTime::now().to_string();
        Self { trunkline_record: RECORD_VERSION, started, version: version.into() }
    }

    /// Writes the header as one line of JSON, without the end of the line.
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Reads a record file, event by event.
///
/// A last line without an end, as a killed recorder leaves, is not an event.
#[derive(Debug)]
pub struct RecordReader<R> {
    source: R,
    line: usize,
    header: RecordHeader,
}

impl<R: BufRead> RecordReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// There is none, or a later version wrote it.
    pub fn new(mut source: R) -> Result<Self, RecordFileError> {
        let line = read_line(&mut source, 1)?.ok_or(RecordFileError::NoHeader)?;
        let version = serde_json::from_slice::<serde_json::Value>(&line)
            .ok()
            .and_then(|header| header.get("trunkline_record")?.as_u64());
        match version {
            None | Some(0) => return Err(RecordFileError::NoHeader),
            Some(RECORD_VERSION) => {}
            Some(newer) => return Err(RecordFileError::Newer(newer)),
        }
        let header = serde_json::from_slice(&line).map_err(|_| RecordFileError::NoHeader)?;
        Ok(Self { source, line: 1, header })
    }

    /// Returns the header.
    pub fn header(&self) -> &RecordHeader {
        &self.header
    }
}

impl<R: BufRead> Iterator for RecordReader<R> {
    type Item = Result<HubEvent, RecordFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.line += 1;
            let line = match read_line(&mut self.source, self.line) {
                Ok(line) => line?,
                Err(error) => return Some(Err(error)),
            };
            let text = String::from_utf8_lossy(&line);
            if text.trim().is_empty() {
                continue;
            }
            let line = self.line;
            return Some(HubEvent::parse(&text).map_err(|error| RecordFileError::Line { line, error }));
        }
    }
}

/// Reads a line within its bound; `None` at the end, also of a line that was never ended.
fn read_line(source: &mut impl BufRead, number: usize) -> Result<Option<Vec<u8>>, RecordFileError> {
    let mut line = Vec::new();
    let read = io::Read::take(&mut *source, MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        return Ok(Some(line));
    }
    match u64::try_from(read).is_ok_and(|read| read >= MAX_LINE_BYTES) {
        true => Err(RecordFileError::TooLong(number)),
        false => Ok(None),
    }
}
