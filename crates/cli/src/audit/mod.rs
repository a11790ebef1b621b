//! The audit log: one line of JSON for each call, and nothing of what was said unless somebody asks for it.

mod record;
mod writer;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use trunkline_server::protocol::{Method, Refusal};
use trunkline_server::{BoxFuture, Call, Interceptor, Next, Outcome};

use self::record::Record;
use self::writer::Writer;

/// What is written of a call's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// How many bytes they have.
    Counted,
    /// All of them, up to a length.
    Written,
}

/// A file with a line for each call. Clones write to the same.
#[derive(Clone, Debug)]
pub(crate) struct Audit {
    writer: Arc<Writer>,
    arguments: Arguments,
    /// Where there is more than one server.
    index: Option<Arc<dyn Index>>,
}

/// Knows whose each thing is, and why something is not there.
pub(crate) trait Index: Send + Sync + fmt::Debug {
    /// Returns the server that has a thing, and what it is called there.
    fn owner_of(&self, method: Method, name: &str) -> Option<(String, String)>;

    /// Returns the rule by which a tool is not there.
    fn rule_against(&self, tool: &str) -> Option<String>;
}

impl Audit {
    /// Appends to a file, which only its owner can read if it is new.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(file: &Path, arguments: Arguments) -> io::Result<Self> {
        Ok(Self { writer: Arc::new(Writer::begin(file)?), arguments, index: None })
    }

    /// Says whose each thing is in what is written from here on.
    #[must_use]
    pub(crate) fn with_index(self, index: impl Index + 'static) -> Self {
        Self { index: Some(Arc::new(index)), ..self }
    }

    /// Opens the file anew, since somebody may have given its name to another.
    pub(crate) fn reopen(&self) {
        self.writer.reopen();
    }

    /// Writes what is left, as long as that does not take too long.
    pub(crate) fn close(&self) {
        self.writer.close();
    }
}

impl Interceptor for Audit {
    fn around(&self, call: Call, next: Next) -> BoxFuture<'static, Result<Outcome, Refusal>> {
        // It is dropped with the call, and then tells that nobody waited for the end.
        let record = Record::begin(self, &call, &next);
        let answering = next.run(call);
        Box::pin(async move {
            let answer = answering.await;
            record.end(&answer);
            answer
        })
    }
}
