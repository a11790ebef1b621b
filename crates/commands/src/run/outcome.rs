use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use trunkline_server::Context;
use trunkline_server::protocol::model::{CallToolResult, Content};
use trunkline_server::protocol::{Members, Raw};
use trunkline_transport::process::{Captured, Cause, Exit, Finished, RunLimits};

use super::shelf::Spill;

/// Where a result says how the command ended.
const EXIT_CODE: &str = "trunkline/exitCode";
const SIGNAL: &str = "trunkline/signal";
/// Where a success has what the command wrote to standard error.
const STDERR: &str = "trunkline/stderr";

/// How the output of a command is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reading {
    #[default]
    Text,
    /// What is JSON is structured content too.
    Json,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    By(Exit),
    /// It was ended after this time.
    TimedOut(Duration),
}

impl Ending {
    pub(crate) fn of(finished: &Finished, limits: &RunLimits) -> Self {
        match (&finished.cause, limits.within) {
            (Cause::TimedOut, Some(within)) => Self::TimedOut(within),
            _ => Self::By(finished.exit),
        }
    }

    fn is_success(self) -> bool {
        self == Self::By(Exit::Code(0))
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(exit) => exit.fmt(f),
            Self::TimedOut(within) => write!(f, "timed out after {within:?} and was ended"),
        }
    }
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Outcome<'t> {
    pub(crate) title: &'t str,
    pub(crate) ending: Ending,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
}

impl Outcome<'_> {
    /// Keeps what is too long for the result, and returns links to it.
    pub(crate) fn keep(&self, [stdout, stderr]: [Spill; 2], context: &Context) -> Vec<Content> {
        let outputs = [(stdout, &self.stdout, "output"), (stderr, &self.stderr, "errors")];
        let links = outputs.into_iter().filter_map(|(spill, captured, what)| {
            let name = format!("{what} of {}", self.title);
            spill.keep(&captured.bytes, context.principal(), name).map(Content::link)
        });
        links.collect()
    }

    /// Makes the result that the caller of the tool gets.
    pub(crate) fn into_result(self, reading: Reading, links: Vec<Content>) -> CallToolResult {
        let mut result = if self.ending.is_success() { self.success(reading) } else { self.failure() };
        result.content.extend(links);
        let meta = result.meta.get_or_insert_with(Members::new);
        match self.ending {
            Ending::By(Exit::Code(code)) => meta.set(EXIT_CODE, number(code)),
            Ending::By(Exit::Signal(signal)) => meta.set(SIGNAL, number(signal)),
            _ => {}
        }
        result
    }

    fn success(&self, reading: Reading) -> CallToolResult {
        let mut result = CallToolResult::text(text(&self.stdout));
        // Scripts that were written for golem's server compare this member.
        result.rest.set("isError", Raw::from(&serde_json::Value::Bool(false)));
        if reading == Reading::Json && self.stdout.dropped == 0 {
            result.structured = structured(&self.stdout.text());
        }
        if !self.stderr.bytes.is_empty() {
            result.meta.get_or_insert_with(Members::new).set(STDERR, Raw::from_text(&text(&self.stderr)));
        }
        result
    }

    fn failure(&self) -> CallToolResult {
        let mut content = Vec::new();
        content.extend((!self.stdout.bytes.is_empty()).then(|| Content::text(text(&self.stdout))));
        let stderr = text(&self.stderr);
        let said = format!("{}\n`{}` {}", stderr.trim_end(), self.title, self.ending);
        content.push(Content::text(said.trim_start_matches('\n')));
        CallToolResult { content, is_error: true, ..CallToolResult::default() }
    }
}

/// Returns the text of an output, with a mark where it was cut.
fn text(captured: &Captured) -> String {
    let text = captured.text();
    match captured.dropped {
        0 => text.into_owned(),
        dropped => format!("{}\n[{dropped} more bytes were left out here]", whole(&text)),
    }
}

/// Leaves out what the cut made of a character that was cut through.
fn whole(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text.trim_end_matches(char::REPLACEMENT_CHARACTER))
}

fn structured(text: &str) -> Option<Raw> {
    let parsed = Raw::parse(text.trim());
    if let Err(error) = &parsed {
        tracing::debug!(%error, "a command that writes JSON wrote something else");
    }
    parsed.ok()
}

fn number(number: i32) -> Raw {
    Raw::from(&serde_json::Value::from(number))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trunkline_server::protocol::codec::Dialect;
    use trunkline_server::protocol::{Revision, Writer};

    use super::*;

    fn captured(bytes: &[u8], dropped: u64) -> Captured {
        let mut captured = Captured::default();
        captured.bytes = bytes.to_vec();
        captured.dropped = dropped;
        captured
    }

    fn result(ending: Ending, stdout: (&[u8], u64), stderr: &[u8], reading: Reading) -> Value {
        let stdout = captured(stdout.0, stdout.1);
        let outcome = Outcome { title: "demo list", ending, stdout, stderr: captured(stderr, 0) };
        let mut writer = Writer::default();
        outcome.into_result(reading, Vec::new()).write(Dialect::of(Revision::NEWEST), &mut writer);
        writer.into_raw().decode().unwrap()
    }

    #[test]
    fn what_a_command_wrote_and_how_it_ended_becomes_the_result() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let done = Ending::By(Exit::Code(0));
        for (ending, stdout, stderr, reading, expected) in [
            (
                done,
                (&b"out\n"[..], 0),
                &b""[..],
                Reading::Text,
                json!({ "content": [text("out\n")], "isError": false, "_meta": { "trunkline/exitCode": 0 } }),
            ),
            (
                done,
                (b"{\"a\":1}\n", 0),
                b"note",
                Reading::Json,
                json!({
                    "content": [text("{\"a\":1}\n")], "structuredContent": { "a": 1 }, "isError": false,
                    "_meta": { "trunkline/exitCode": 0, "trunkline/stderr": "note" },
                }),
            ),
            (
                done,
                (b"no json", 0),
                b"",
                Reading::Json,
                json!({ "content": [text("no json")], "isError": false, "_meta": { "trunkline/exitCode": 0 } }),
            ),
            (
                done,
                (b"{\"a\":1}", 7),
                b"",
                Reading::Json,
                json!({
                    "content": [text("{\"a\":1}\n[7 more bytes were left out here]")], "isError": false,
                    "_meta": { "trunkline/exitCode": 0 },
                }),
            ),
            (
                done,
                (b"caf\xc3", 7),
                b"",
                Reading::Text,
                json!({
                    "content": [text("caf\n[7 more bytes were left out here]")], "isError": false,
                    "_meta": { "trunkline/exitCode": 0 },
                }),
            ),
            (
                Ending::By(Exit::Code(3)),
                (b"half", 0),
                b"no such thing\n",
                Reading::Json,
                json!({
                    "content": [text("half"), text("no such thing\n`demo list` exited with code 3")],
                    "isError": true, "_meta": { "trunkline/exitCode": 3 },
                }),
            ),
            (
                Ending::By(Exit::Signal(9)),
                (b"", 0),
                b"",
                Reading::Text,
                json!({
                    "content": [text("`demo list` was ended by SIGKILL")],
                    "isError": true, "_meta": { "trunkline/signal": 9 },
                }),
            ),
            (
                Ending::TimedOut(Duration::from_secs(2)),
                (b"", 0),
                b"",
                Reading::Text,
                json!({
                    "content": [text("`demo list` timed out after 2s and was ended")],
                    "isError": true, "_meta": {},
                }),
            ),
        ] {
            assert_eq!(result(ending, stdout, stderr, reading), expected, "{ending:?}");
        }
    }
}
