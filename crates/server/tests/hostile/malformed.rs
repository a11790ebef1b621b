//! Sends every message of the table over every transport, and a good one after it.

use serde_json::Value;
use trunkline_server::session::Principal;
use trunkline_server::transport::LineChannel;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};

use crate::messages::{ExpectedReply, MessageCase, table};
use crate::raw_http::{self, Connection, LEGACIES, MODERN};
use crate::service::{DEADLINE, Service};

/// No answer to a message that is refused is longer than this, beside the id that it repeats.
const MOST_ANSWER: usize = 2048;

/// A valid message; its response shows that the one before it has had its own or has none.
pub(crate) const AFTER: &str = r#"{"jsonrpc":"2.0","id":"after","method":"ping"}"#;

/// Returns the problem of one response in a revision; `status` is that of HTTP, and a response without a body is
/// empty.
pub(crate) fn check(
    row: &MessageCase,
    expect: ExpectedReply,
    revision: &str,
    status: Option<u16>,
    body: &[u8],
) -> Result<(), String> {
    let text = String::from_utf8_lossy(body);
    let fault = |what: &str| Err(format!("{revision}: {}: {what}: {status:?} {text:.300}", row.name));
    let wanted_status = match expect {
        ExpectedReply::Refused(_, status) => status,
        ExpectedReply::Answered => 200,
        ExpectedReply::Accepted => 202,
    };
    if status.is_some_and(|status| status != wanted_status) {
        return fault(&format!("the status is not {wanted_status}"));
    }
    if expect == ExpectedReply::Accepted {
        return if text.is_empty() { Ok(()) } else { fault("there is an answer") };
    }
    let Ok(answer) = serde_json::from_str::<Value>(&text) else { return fault("the answer is not JSON") };
    match expect {
        ExpectedReply::Refused(code, _) if answer["error"]["code"] != code => {
            return fault(&format!("not {code}"));
        }
        ExpectedReply::Answered if !answer["result"].is_object() => return fault("there is no result"),
        _ => {}
    }
    match &row.id {
        Some(id) if !text.contains(&format!("\"id\":{id},")) => {
            return fault("the id is not that of the request");
        }
        None if answer.get("id") != unknown_id(revision).as_ref() => {
            return fault("an id that is not known is told in another way");
        }
        _ => {}
    }
    if text.len() > MOST_ANSWER + row.id.as_ref().map_or(0, String::len) {
        return fault(&format!("{} bytes are too many", text.len()));
    }
    Ok(())
}

/// Returns the id of a response to a message with an unreadable id.
fn unknown_id(revision: &str) -> Option<Value> {
    matches!(revision, "2024-11-05" | "2025-03-26" | "2025-06-18").then_some(Value::Null)
}

/// Fails with everything that is wrong, so that one run shows it all.
#[track_caller]
pub(crate) fn assert_no_faults(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Sends one message over HTTP, on a connection that others are sent on too unless the server closes it.
async fn check_http(
    service: &Service,
    connection: &mut Option<Connection>,
    row: &MessageCase,
    (expect, revision): (ExpectedReply, &str),
    request: &[u8],
) -> Result<(), String> {
    let mut current = match connection.take() {
        Some(current) => current,
        None => service.connect().await,
    };
    current.send(request).await;
    let reply = current.reply().await;
    if reply.header("connection") != Some("close") {
        *connection = Some(current);
    }
    service.still_serves().await;
    check(row, expect, revision, Some(reply.status), &reply.body)
}

#[tokio::test]
async fn malformed_messages_get_their_documented_error_over_modern_http() {
    let service = Service::start().await;
    let mut connection = None;
    let mut faults = Vec::new();
    for row in table() {
        let Some(expect) = row.modern else { continue };
        let usual = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
        let given = |name: &str| row.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let mut headers: Vec<(&str, &str)> = usual.into_iter().filter(|(name, _)| !given(name)).collect();
        let named = row.headers.iter().map(|(name, value)| (*name, value.as_str()));
        headers.extend(named.filter(|(_, value)| *value != crate::messages::ABSENT));
        let request = raw_http::post(&headers, &row.bytes);
        faults.extend(check_http(&service, &mut connection, &row, (expect, MODERN), &request).await.err());
    }
    assert_no_faults(&faults);
    service.idle().await;
}

#[tokio::test]
async fn malformed_messages_get_their_documented_error_in_a_legacy_session() {
    let service = Service::start().await;
    let mut faults = Vec::new();
    for revision in LEGACIES {
        let session = service.session(revision).await;
        let mut connection = None;
        // The first two do not have the header.
        let version = Some(("MCP-Protocol-Version", revision)).filter(|_| revision >= "2025-06-18");
        let headers: Vec<_> = version.into_iter().chain([("Mcp-Session-Id", &*session)]).collect();
        for row in table() {
            let Some(expect) = row.legacy.filter(|_| row.is_in(revision)) else { continue };
            let request = raw_http::post(&headers, &row.bytes);
            faults.extend(
                check_http(&service, &mut connection, &row, (expect, revision), &request).await.err(),
            );
        }
        let unknown =
            raw_http::post(&[("MCP-Protocol-Version", "v9"), ("Mcp-Session-Id", &session)], AFTER.as_bytes());
        let row = MessageCase::unknown_version();
        let expect = ExpectedReply::Refused(-32602, 400);
        faults.extend(check_http(&service, &mut connection, &row, (expect, revision), &unknown).await.err());
    }
    assert_no_faults(&faults);
    assert_eq!(service.endpoint.sessions(), LEGACIES.len(), "none of the messages opened a session");
    service.idle().await;
}

/// A peer on a channel of lines.
struct Peer {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Peer {
    fn connect(service: &Service) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(theirs);
        let (host, limit) = (service.host.clone(), 4 << 20);
        tokio::spawn(async move {
            host.serve_channel(LineChannel::new(reader, writer, limit), Principal::Process).await
        });
        let (reader, writer) = tokio::io::split(ours);
        Self { lines: BufReader::new(reader).lines(), writer }
    }

    async fn send(&mut self, message: &[u8]) {
        self.writer.write_all(message).await.unwrap();
        self.writer.write_all(b"\n").await.unwrap();
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(DEADLINE, self.lines.next_line()).await.expect("an answer in time");
        line.unwrap().expect("the server closed the channel")
    }

    /// Sends a message, and a valid one after it; the response to the latter shows that the first had none.
    async fn exchange(&mut self, message: &[u8]) -> String {
        self.send(message).await;
        self.send(AFTER.as_bytes()).await;
        let mut first = self.line().await;
        if is_after(&first) {
            return String::new();
        }
        let after = self.line().await;
        assert!(is_after(&after), "{first} was followed by {after}");
        first.shrink_to_fit();
        first
    }
}

pub(crate) fn is_after(line: &str) -> bool {
    line.contains(r#""id":"after""#)
}

#[tokio::test]
async fn malformed_messages_get_their_documented_error_on_a_channel() {
    let service = Service::start().await;
    let mut faults = Vec::new();
    for revision in LEGACIES {
        let mut peer = Peer::connect(&service);
        peer.send(raw_http::initialize(revision).as_bytes()).await;
        assert!(peer.line().await.contains("serverInfo"));
        for row in table() {
            let Some(expect) = row.channel.filter(|_| row.is_in(revision)) else { continue };
            let answer = peer.exchange(&row.bytes).await;
            faults.extend(check(&row, expect, revision, None, answer.as_bytes()).err());
        }
    }
    assert_no_faults(&faults);
    service.idle().await;
}
