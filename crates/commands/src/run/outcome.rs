use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use trunkline_server::Context;
use trunkline_server::protocol::model::{CallToolResult, Content};
use trunkline_server::protocol::{JsonObject, RawJson};
use trunkline_transport::process::{CapturedOutput, ExitCause, ProcessExit, RunLimits, RunOutput};

use super::output_store::{OutputOwner, OutputSpill};

/// The `_meta` keys for how the command ended.
const EXIT_CODE_KEY: &str = "trunkline/exitCode";
const SIGNAL_KEY: &str = "trunkline/signal";
/// The `_meta` key for the standard error of a successful command.
const STDERR_KEY: &str = "trunkline/stderr";

/// How the output of a command is parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ResultFormat {
    #[default]
    Text,
    /// Output that is JSON becomes structured content too.
    Json,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandEnding {
    Exited(ProcessExit),
    /// It was killed after this timeout.
    TimedOut(Duration),
}

impl CommandEnding {
    pub(crate) fn new(finished: &RunOutput, limits: &RunLimits) -> Self {
        match (&finished.cause, limits.timeout) {
            (ExitCause::TimedOut, Some(within)) => Self::TimedOut(within),
            _ => Self::Exited(finished.exit),
        }
    }

    fn is_success(self) -> bool {
        self == Self::Exited(ProcessExit::Code(0))
    }
}

impl fmt::Display for CommandEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(exit) => exit.fmt(f),
            Self::TimedOut(within) => write!(f, "timed out after {within:?} and was ended"),
        }
    }
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct CommandOutcome<'t> {
    pub(crate) title: &'t str,
    pub(crate) ending: CommandEnding,
    pub(crate) stdout: CapturedOutput,
    pub(crate) stderr: CapturedOutput,
}

impl CommandOutcome<'_> {
    /// Stores outputs that are too long for the result, and returns links to them.
    pub(crate) fn store_overflow(
        &self,
        [stdout, stderr]: [OutputSpill; 2],
        context: &Context,
    ) -> Vec<Content> {
        let outputs = [(stdout, &self.stdout, "output"), (stderr, &self.stderr, "errors")];
        let links = outputs.into_iter().filter_map(|(spill, captured, what)| {
            let name = format!("{what} of {}", self.title);
            spill.store(&captured.bytes, OutputOwner::of_call(context), name).map(Content::link)
        });
        links.collect()
    }

    /// Converts the outcome to the result of the tool call.
    pub(crate) fn into_result(self, result_format: ResultFormat, links: Vec<Content>) -> CallToolResult {
        let mut result = if self.ending.is_success() { self.success(result_format) } else { self.failure() };
        result.content.extend(links);
        let meta = result.meta.get_or_insert_with(JsonObject::new);
        match self.ending {
            CommandEnding::Exited(ProcessExit::Code(code)) => meta.set(EXIT_CODE_KEY, number(code)),
            CommandEnding::Exited(ProcessExit::Signal(signal)) => meta.set(SIGNAL_KEY, number(signal)),
            _ => {}
        }
        result
    }

    fn success(&self, result_format: ResultFormat) -> CallToolResult {
        let mut result = CallToolResult::text(marked_text(&self.stdout));
        // Scripts for golem's server compare this member.
        result.rest.set("isError", RawJson::from(&serde_json::Value::Bool(false)));
        if result_format == ResultFormat::Json && self.stdout.dropped == 0 {
            result.structured = parse_structured(&self.stdout.text());
        }
        if !self.stderr.bytes.is_empty() {
            result
                .meta
                .get_or_insert_with(JsonObject::new)
                .set(STDERR_KEY, RawJson::from_text(&marked_text(&self.stderr)));
        }
        result
    }

    fn failure(&self) -> CallToolResult {
        let mut content = Vec::new();
        content.extend((!self.stdout.bytes.is_empty()).then(|| Content::text(marked_text(&self.stdout))));
        let stderr = marked_text(&self.stderr);
        let message = format!("{}\n`{}` {}", stderr.trim_end(), self.title, self.ending);
        content.push(Content::text(message.trim_start_matches('\n')));
        CallToolResult { content, is_error: true, ..CallToolResult::default() }
    }
}

/// Returns the text of an output, with a note if it was truncated.
fn marked_text(captured: &CapturedOutput) -> String {
    let text = captured.text();
    match captured.dropped {
        0 => text.into_owned(),
        dropped => format!("{}\n[{dropped} more bytes were omitted]", trim_partial_char(&text)),
    }
}

/// Removes a character that was cut in half by the truncation.
fn trim_partial_char(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text.trim_end_matches(char::REPLACEMENT_CHARACTER))
}

fn parse_structured(text: &str) -> Option<RawJson> {
    let parsed = RawJson::parse(text.trim());
    if let Err(error) = &parsed {
        tracing::debug!(%error, "a command with JSON output wrote something else");
    }
    parsed.ok()
}

fn number(number: i32) -> RawJson {
    RawJson::from(&serde_json::Value::from(number))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trunkline_server::protocol::codec::Dialect;
    use trunkline_server::protocol::{JsonWriter, Revision};

    use super::*;

    fn captured(bytes: &[u8], dropped: u64) -> CapturedOutput {
        let mut captured = CapturedOutput::default();
        captured.bytes = bytes.to_vec();
        captured.dropped = dropped;
        captured
    }

    fn result(
        ending: CommandEnding,
        stdout: (&[u8], u64),
        stderr: &[u8],
        result_format: ResultFormat,
    ) -> Value {
        let stdout = captured(stdout.0, stdout.1);
        let outcome = CommandOutcome { title: "demo list", ending, stdout, stderr: captured(stderr, 0) };
        let mut writer = JsonWriter::default();
        outcome.into_result(result_format, Vec::new()).write(Dialect::of(Revision::NEWEST), &mut writer);
        writer.into_raw().decode().unwrap()
    }

    #[test]
    fn command_output_and_exit_become_the_tool_result() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let done = CommandEnding::Exited(ProcessExit::Code(0));
        for (ending, stdout, stderr, result_format, expected) in [
            (
                done,
                (&b"out\n"[..], 0),
                &b""[..],
                ResultFormat::Text,
                json!({ "content": [text("out\n")], "isError": false, "_meta": { "trunkline/exitCode": 0 } }),
            ),
            (
                done,
                (b"{\"a\":1}\n", 0),
                b"note",
                ResultFormat::Json,
                json!({
                    "content": [text("{\"a\":1}\n")], "structuredContent": { "a": 1 }, "isError": false,
                    "_meta": { "trunkline/exitCode": 0, "trunkline/stderr": "note" },
                }),
            ),
            (
                done,
                (b"no json", 0),
                b"",
                ResultFormat::Json,
                json!({ "content": [text("no json")], "isError": false, "_meta": { "trunkline/exitCode": 0 } }),
            ),
            (
                done,
                (b"{\"a\":1}", 7),
                b"",
                ResultFormat::Json,
                json!({
                    "content": [text("{\"a\":1}\n[7 more bytes were omitted]")], "isError": false,
                    "_meta": { "trunkline/exitCode": 0 },
                }),
            ),
            (
                done,
                (b"caf\xc3", 7),
                b"",
                ResultFormat::Text,
                json!({
                    "content": [text("caf\n[7 more bytes were omitted]")], "isError": false,
                    "_meta": { "trunkline/exitCode": 0 },
                }),
            ),
            (
                CommandEnding::Exited(ProcessExit::Code(3)),
                (b"half", 0),
                b"no such thing\n",
                ResultFormat::Json,
                json!({
                    "content": [text("half"), text("no such thing\n`demo list` exited with code 3")],
                    "isError": true, "_meta": { "trunkline/exitCode": 3 },
                }),
            ),
            (
                CommandEnding::Exited(ProcessExit::Signal(9)),
                (b"", 0),
                b"",
                ResultFormat::Text,
                json!({
                    "content": [text("`demo list` was ended by SIGKILL")],
                    "isError": true, "_meta": { "trunkline/signal": 9 },
                }),
            ),
            (
                CommandEnding::TimedOut(Duration::from_secs(2)),
                (b"", 0),
                b"",
                ResultFormat::Text,
                json!({
                    "content": [text("`demo list` timed out after 2s and was ended")],
                    "isError": true, "_meta": {},
                }),
            ),
        ] {
            assert_eq!(result(ending, stdout, stderr, result_format), expected, "{ending:?}");
        }
    }
}
