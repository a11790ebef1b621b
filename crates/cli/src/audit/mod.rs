//! The audit log: one line of JSON for each call, without arguments and results unless configured.
//!
//! # Invariants
//!
//! - Every call is one line, and no line contains a secret: `audit_log_has_one_line_per_call_without_secrets`.
//! - A line that cannot be written in time is dropped; calls do not wait for it:
//!   `audit_lines_are_dropped_when_the_writer_queue_is_full`.
//! - A file that is not the user's own is not written to: `audit_file_of_others_is_refused`.
//! - A path that leads elsewhere later is not followed: `reopened_audit_log_is_not_written_elsewhere`.
//! - With `on_failure = "refuse"` no call is made once a line was lost, until the file can be written again:
//!   `calls_are_refused_while_the_audit_log_cannot_be_written`.

mod audit_file;
mod credential;
mod record;
mod token_lines;
mod writer;

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use trunkline_server::protocol::{Method, Refusal};
use trunkline_server::{BoxFuture, CallerIdentity, HandlerOutcome, IncomingCall, Interceptor, Next};

use self::record::AuditRecord;
pub(crate) use self::token_lines::{AuditSlot, AuditedTokenStore};
use self::writer::AuditWriter;

/// Whether the arguments of calls are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentLogging {
    /// How many bytes they have.
    SizeOnly,
    /// All of them, up to a length.
    Full,
}

/// What happens to calls while the log cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuditFailure {
    /// They are made, and their lines are counted as lost.
    #[default]
    Continue,
    /// They are refused.
    Refuse,
}

/// A file with a line for each call. Clones write to the same.
#[derive(Clone, Debug)]
pub(crate) struct AuditLog {
    writer: Arc<AuditWriter>,
    arguments: ArgumentLogging,
    on_failure: AuditFailure,
    /// Where there is more than one server.
    owners: Option<Arc<dyn ItemOwnerLookup>>,
}

/// Finds the server that owns an item, and the rules that decide on it.
pub(crate) trait ItemOwnerLookup: Send + Sync + fmt::Debug {
    /// Returns the server that has a thing, and what it is called there.
    fn owner_of(&self, method: Method, name: &str) -> Option<(String, String)>;

    /// Returns the decision of the access rules on an item, if there are rules and a server has the item.
    fn access_rule(&self, caller: CallerIdentity<'_>, method: Method, name: &str) -> Option<String>;

    /// Returns the rule by which a tool is not there.
    fn denying_rule(&self, tool: &str) -> Option<String>;
}

impl AuditLog {
    /// Appends to a file, which only its owner can read if it is new.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(
        file: &Path,
        arguments: ArgumentLogging,
        on_failure: AuditFailure,
    ) -> io::Result<Self> {
        Ok(Self { writer: Arc::new(AuditWriter::spawn(file)?), arguments, on_failure, owners: None })
    }

    /// Adds the owning server to every line.
    #[must_use]
    pub(crate) fn with_owner_lookup(self, index: impl ItemOwnerLookup + 'static) -> Self {
        Self { owners: Some(Arc::new(index)), ..self }
    }

    /// Writes a line that is not about a call.
    fn write_line(&self, line: &impl serde::Serialize) {
        if let Ok(mut line) = serde_json::to_vec(line) {
            line.push(b'\n');
            self.writer.write(line);
        }
    }

    /// Reopens the file, for log rotation.
    pub(crate) fn reopen(&self) {
        self.writer.reopen();
    }

    /// Flushes the queue, with a timeout.
    pub(crate) fn close(&self) {
        self.writer.close();
    }
}

impl Interceptor for AuditLog {
    fn intercept(
        &self,
        call: IncomingCall,
        next: Next,
    ) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        if self.on_failure == AuditFailure::Refuse && !self.writer.is_healthy() {
            let refusal =
                Refusal::INTERNAL.with_message("the audit log cannot be written, so that no call is made");
            return Box::pin(async move { Err(refusal) });
        }
        // The record is dropped with the call, and then logs it as cancelled.
        let record = AuditRecord::begin(self, &call, &next);
        let answering = next.run(call);
        Box::pin(async move {
            let answer = answering.await;
            record.end(&answer);
            answer
        })
    }
}
