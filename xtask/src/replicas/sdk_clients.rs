//! The clients of the official SDKs during the faults of a run: each keeps one connected client, as long as its SDK does.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use serde_json::json;

use super::history::{CallNumber, HistoryEvent, SessionNumber};
use super::messages::{ASK, ECHO, call_params, mark, marked};
use super::record::{RequestOutcome, RunRecord};
use crate::TaskResult;
use crate::interop::{CallAnswer, ControlledClient, start_controlled_client};
use crate::tools::InstalledTools;

/// A client of an SDK, in the mode that it is best at.
struct SdkKind {
    name: &'static str,
    mode: &'static str,
    /// Its name in the table of a run.
    title: &'static str,
    /// Whether the SDK ends its client for good when the connection of a request breaks, and in 1.x already at a 503. Its program
    /// has to connect another client then.
    ends_at_failures: bool,
}

const CLIENTS: [SdkKind; 4] = [
    SdkKind { name: "python-v1", mode: "legacy", title: "call of PyPI mcp 1.x", ends_at_failures: true },
    SdkKind { name: "python-v2", mode: "2026-07-28", title: "call of PyPI mcp 2.x", ends_at_failures: true },
    SdkKind { name: "node-v1", mode: "legacy", title: "call of npm sdk 1.x", ends_at_failures: false },
    SdkKind { name: "node-v2", mode: "2026-07-28", title: "call of npm client 2.x", ends_at_failures: false },
];

/// The tool that requests a model of the client.
const SAMPLE: &str = "test_sampling";

/// How long a client waits for an answer: an SDK that lost a stream may wait for it for ever.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How long a client waits between two calls.
const PAUSE: Duration = Duration::from_millis(20);

/// How long a client may take to go on after the last fault.
const RECOVERY_LIMIT: Duration = Duration::from_secs(60);

/// Their sessions and calls have numbers that no other client of a run uses.
const FIRST_SESSION: SessionNumber = 1 << 29;
const CALLS_OF_A_CLIENT: CallNumber = 1 << 50;

/// How long a program waits before it opens another connection.
const CONNECT_PAUSE: Duration = Duration::from_secs(1);

/// The connected clients of a run.
pub(super) struct SdkClients<'t>(Vec<SdkCaller<'t>>);

impl<'t> SdkClients<'t> {
    /// Connects all of them, while nothing fails.
    pub(super) fn start(tools: &'t InstalledTools, url: &str, folder: &Path) -> TaskResult<Self> {
        let connect = |(session, kind): (SessionNumber, &'static SdkKind)| {
            let place = ClientPlace { tools, kind, url: url.to_owned(), folder: folder.to_path_buf() };
            Ok(SdkCaller { session, client: place.connect()?, place })
        };
        (FIRST_SESSION..).zip(&CLIENTS).map(connect).collect::<TaskResult<_>>().map(Self)
    }

    /// Has all of them call until the run is over, and once more then.
    pub(super) fn call_until_over<'scope, 'env: 'scope>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        record: &'scope RunRecord,
        is_over: &'scope AtomicBool,
    ) where
        't: 'scope,
    {
        for mut caller in self.0 {
            record.add(HistoryEvent::Opened(caller.session));
            scope.spawn(move || caller.run(record, is_over));
        }
    }
}

/// What a client is connected with.
struct ClientPlace<'t> {
    tools: &'t InstalledTools,
    kind: &'static SdkKind,
    url: String,
    folder: PathBuf,
}

impl ClientPlace<'_> {
    fn connect(&self) -> TaskResult<ControlledClient> {
        let SdkKind { name, mode, .. } = self.kind;
        let log = File::options().create(true).append(true).open(self.folder.join(format!("{name}.log")))?;
        start_controlled_client(self.tools, name, mode, &self.url, log)
    }
}

struct SdkCaller<'t> {
    session: SessionNumber,
    client: ControlledClient,
    place: ClientPlace<'t>,
}

impl SdkCaller<'_> {
    fn run(&mut self, record: &RunRecord, is_over: &AtomicBool) {
        let title = self.place.kind.title;
        let first = (CallNumber::from(self.session - FIRST_SESSION) + 1) * CALLS_OF_A_CLIENT;
        let mut limit = None;
        for number in first.. {
            let is_last = is_over.load(Ordering::SeqCst);
            let tool = match number % 5 {
                3 if !is_last => ASK,
                4 if !is_last => SAMPLE,
                _ => ECHO,
            };
            let outcome = self.call(record, tool, number);
            if is_last && outcome == RequestOutcome::Answered {
                return;
            }
            let end = *limit.get_or_insert_with(|| Instant::now() + RECOVERY_LIMIT);
            if !is_last {
                limit = None;
            } else if Instant::now() >= end {
                record.note_unexpected(format!("{title}: the client does not go on after the last fault"));
                return;
            }
            thread::sleep(PAUSE);
            if self.client.has_ended() {
                self.connect_again(record);
            }
        }
    }

    /// Opens another connection, as a program does after its SDK has ended the one before.
    fn connect_again(&mut self, record: &RunRecord) {
        let SdkKind { title, ends_at_failures, .. } = self.place.kind;
        if !ends_at_failures {
            record.note_unexpected(format!("{title}: the client has ended"));
        }
        thread::sleep(CONNECT_PAUSE);
        // While Redis is away there is no new session, and the next attempt follows.
        if let Ok(client) = self.place.connect() {
            self.client = client;
        }
    }

    fn call(&self, record: &RunRecord, tool: &str, number: CallNumber) -> RequestOutcome {
        let params = match tool {
            SAMPLE => json!({ "arguments": { "prompt": mark(number) } }),
            _ => call_params(tool, number),
        };
        record.add(HistoryEvent::Called(self.session, number));
        let arguments = params.get("arguments").cloned().unwrap_or_default();
        let outcome = match self.client.call_within(tool, &arguments, ANSWER_LIMIT) {
            // Answers to questions do not carry the number of their call.
            Ok(CallAnswer::Text(text)) => match if tool == ECHO { marked(&text) } else { Some(number) } {
                Some(answered) => {
                    let (session, call) = (self.session, number);
                    record.add(HistoryEvent::Answered { session, call, number: answered });
                    RequestOutcome::Answered
                }
                None => {
                    record.note_unexpected(format!("{}: {text}", self.place.kind.title));
                    RequestOutcome::Unexpected
                }
            },
            // An SDK reports errors of calls and of connections alike.
            Ok(CallAnswer::Refused(_)) => RequestOutcome::CallFailed,
            Err(_) => RequestOutcome::Broken,
        };
        record.count(self.place.kind.title, outcome);
        outcome
    }
}
