//! One client: a legacy session and modern calls through the balancer, one request after the other, and what comes of each.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::connection::{HttpConnection, ReplyHead, StreamMessage};
use super::history::{CallNumber, HistoryEvent, SessionNumber};
use super::messages::{self, ASK, ECHO, MODERN, call_params, marked, result_text};
use super::record::{RequestOutcome, RunRecord};

/// How often, and after what pause, a client tries again what it must not give up: to open its session, to resume a stream
/// and to answer a question.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(200);

/// Modern calls have no session, and belong to their client in its place.
const MODERN_SESSIONS: SessionNumber = 1 << 30;

/// How many sessions one client may open, and how many calls it may make.
const SESSIONS_OF_A_CLIENT: SessionNumber = 1 << 16;
const CALLS_OF_A_CLIENT: CallNumber = 1 << 40;

pub(super) struct LoadClient {
    number: u32,
    address: SocketAddr,
    record: Arc<RunRecord>,
    connection: Option<HttpConnection>,
    pub(super) session: SessionNumber,
    sessions: SessionNumber,
    session_id: String,
    calls: CallNumber,
}

impl LoadClient {
    pub(super) fn new(number: u32, address: SocketAddr, record: Arc<RunRecord>) -> Self {
        Self {
            number,
            address,
            record,
            connection: None,
            session: 0,
            sessions: 0,
            session_id: String::new(),
            calls: 0,
        }
    }

    /// Makes one call of a kind that follows from its place: most are plain, a few ask, and a few end their session.
    pub(super) fn step(&mut self, place: usize) {
        match place % 100 {
            20 | 70 => self.observe("legacy question", Self::ask_legacy),
            45 => self.observe("legacy question, resumed", Self::ask_and_resume),
            10 | 60 => self.observe("modern question", Self::ask_modern),
            95 => self.observe("end of a session", Self::replace_session),
            rest if rest % 2 == 0 => self.observe("legacy call", Self::call_legacy),
            _ => self.observe("modern call", Self::call_modern),
        }
    }

    fn observe(&mut self, kind: &'static str, step: fn(&mut Self) -> Result<RequestOutcome>) {
        let outcome = step(self).unwrap_or_else(|_| {
            self.connection = None;
            RequestOutcome::Broken
        });
        self.record.count(kind, outcome);
    }

    /// Opens a session, as often as it takes.
    pub(super) fn open(&mut self) -> Result<()> {
        let mut last = Error::from(ErrorKind::TimedOut);
        for _ in 0..ATTEMPTS {
            match self.try_open() {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => last = error,
            }
            self.connection = None;
            sleep(PAUSE);
        }
        Err(last)
    }

    fn try_open(&mut self) -> Result<bool> {
        let head = self.send("POST", &[], &messages::initialize())?;
        self.connection()?.read_body()?;
        let Some(id) = head.header("mcp-session-id").filter(|_| head.status == 200) else { return Ok(false) };
        self.session_id = id.to_owned();
        self.session = self.number * SESSIONS_OF_A_CLIENT + self.sessions;
        self.sessions += 1;
        self.record.add(HistoryEvent::Opened(self.session));
        // One that gets lost does no harm: the server accepts requests without it.
        self.post(&messages::initialized())?;
        self.connection()?.read_body()?;
        Ok(true)
    }

    fn next_call(&mut self, session: SessionNumber) -> CallNumber {
        self.calls += 1;
        let call = CallNumber::from(self.number) * CALLS_OF_A_CLIENT + self.calls;
        self.record.add(HistoryEvent::Called(session, call));
        call
    }

    fn connection(&mut self) -> Result<&mut HttpConnection> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            empty => Ok(empty.insert(HttpConnection::open(self.address)?)),
        }
    }

    fn send(&mut self, method: &str, headers: &[(&str, &str)], body: &str) -> Result<ReplyHead> {
        let started = Instant::now();
        let head = self.connection()?.request(method, headers, body)?;
        if head.status == 503 {
            self.record.note_unavailable(started.elapsed());
        }
        Ok(head)
    }

    /// Posts a message in the session.
    pub(super) fn post(&mut self, body: &str) -> Result<ReplyHead> {
        let id = self.session_id.clone();
        let head = self.send("POST", &session_headers(&id), body)?;
        self.note_status(head.status);
        Ok(head)
    }

    fn note_status(&self, status: u16) {
        match status {
            200..=299 => self.record.add(HistoryEvent::Accepted(self.session)),
            404 => self.record.add(HistoryEvent::NotFound(self.session)),
            _ => {}
        }
    }

    /// Returns how a request ended that is no response of the call.
    fn refused(&mut self, head: &ReplyHead) -> Result<RequestOutcome> {
        let body = self.connection()?.read_body()?;
        Ok(match head.status {
            503 if body.contains("try again later") => RequestOutcome::Unavailable,
            503 if body.contains("shutting down") => RequestOutcome::Draining,
            502 | 504 => RequestOutcome::NoReplica,
            status => {
                self.record.note_unexpected(format!("{status} {body}"));
                RequestOutcome::Unexpected
            }
        })
    }

    fn call_legacy(&mut self) -> Result<RequestOutcome> {
        let call = self.next_call(self.session);
        let head = self.post(&messages::request(call, "tools/call", call_params(ECHO, call)))?;
        self.take_answer(self.session, call, &head)
    }

    fn call_modern(&mut self) -> Result<RequestOutcome> {
        let session = MODERN_SESSIONS + self.number;
        let call = self.next_call(session);
        let params = messages::modern(call_params(ECHO, call));
        let head = self.post_modern(ECHO, &messages::request(call, "tools/call", params))?;
        self.take_answer(session, call, &head)
    }

    fn post_modern(&mut self, tool: &str, body: &str) -> Result<ReplyHead> {
        let headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
        self.send("POST", &headers, body)
    }

    /// Reads the one response of a call, whether as JSON or at the end of a stream.
    fn take_answer(
        &mut self,
        session: SessionNumber,
        call: CallNumber,
        head: &ReplyHead,
    ) -> Result<RequestOutcome> {
        match self.read_message(call, head)? {
            Some(message) => Ok(self.note_answer(session, call, &message)),
            None if head.is_stream() => Ok(RequestOutcome::Broken),
            None => self.refused(head),
        }
    }

    /// Reads the response with the id of a call; `None` if there is none.
    fn read_message(&mut self, call: CallNumber, head: &ReplyHead) -> Result<Option<Value>> {
        if head.status != 200 && !(head.status == 400 && head.header("mcp-session-id").is_none()) {
            return Ok(None);
        }
        if !head.is_stream() {
            let body = self.connection()?.read_body()?;
            return Ok(serde_json::from_str(&body).ok());
        }
        while let Some(event) = self.connection()?.next_event()? {
            let Ok(message) = serde_json::from_str::<Value>(&event.data) else { continue };
            if message.get("id").and_then(Value::as_u64) == Some(call) {
                // The rest is the end of the stream.
                self.connection()?.read_body()?;
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    fn note_answer(&self, session: SessionNumber, call: CallNumber, message: &Value) -> RequestOutcome {
        let answered = message.get("id").and_then(Value::as_u64).unwrap_or(call);
        match result_text(message).and_then(marked) {
            Some(number) => {
                self.record.add(HistoryEvent::Answered { session, call: answered, number });
                RequestOutcome::Answered
            }
            None => {
                self.record.add(HistoryEvent::Failed(session, answered));
                if message.get("error").is_none() {
                    self.record.note_unexpected(message.to_string());
                    return RequestOutcome::Unexpected;
                }
                RequestOutcome::CallFailed
            }
        }
    }

    fn ask_modern(&mut self) -> Result<RequestOutcome> {
        let session = MODERN_SESSIONS + self.number;
        let call = self.next_call(session);
        let params = messages::modern(call_params(ASK, call));
        let head = self.post_modern(ASK, &messages::request(call, "tools/call", params.clone()))?;
        let Some(asked) = self.read_message(call, &head)? else { return self.refused(&head) };
        let Some(state) = asked.pointer("/result/requestState").cloned() else {
            return Ok(self.note_answer(session, call, &asked));
        };
        let questions = asked.pointer("/result/inputRequests").and_then(Value::as_object);
        let mut responses = serde_json::Map::new();
        for (key, question) in questions.into_iter().flatten() {
            let number = marked(&question.to_string()).unwrap_or_default();
            self.record.add(HistoryEvent::Asked(session, number, key.clone()));
            responses.insert(key.clone(), messages::accepted(call));
        }
        let retry = messages::retried(params, responses, state);
        let head = self.post_modern(ASK, &messages::request(call, "tools/call", retry))?;
        self.take_answer(session, call, &head)
    }

    fn ask_legacy(&mut self) -> Result<RequestOutcome> {
        self.ask(StreamCut::Never)
    }

    fn ask_and_resume(&mut self) -> Result<RequestOutcome> {
        self.ask(StreamCut::AfterFirstEvent)
    }

    /// Makes a call with a question, answers over another connection, and resumes the stream wherever it breaks.
    fn ask(&mut self, cut: StreamCut) -> Result<RequestOutcome> {
        let call = self.next_call(self.session);
        let head = self.post(&messages::request(call, "tools/call", call_params(ASK, call)))?;
        if head.status != 200 || !head.is_stream() {
            return match self.read_message(call, &head)? {
                Some(message) => Ok(self.note_answer(self.session, call, &message)),
                None => self.refused(&head),
            };
        }
        let mut stream = self.connection.take();
        let mut position: Option<String> = None;
        let mut is_cut = cut == StreamCut::Never;
        for _ in 0..ATTEMPTS {
            let Some(connection) = &mut stream else {
                let Some(last) = &position else { return Ok(RequestOutcome::Broken) };
                match self.resume(last)? {
                    Resumption::Open(connection) => stream = Some(connection),
                    Resumption::Later => sleep(PAUSE),
                    Resumption::Over => return Ok(RequestOutcome::Broken),
                }
                continue;
            };
            let Ok(Some(event)) = connection.next_event() else {
                stream = None;
                continue;
            };
            self.note_event(&event);
            position = event.id.clone().or(position);
            if let Some(outcome) = self.take_call_event(call, &event)? {
                return Ok(outcome);
            }
            if !is_cut {
                (stream, is_cut) = (None, true);
            }
        }
        Ok(RequestOutcome::Broken)
    }

    /// Acts on a message of a call's stream; returns how the call ended, if it has.
    fn take_call_event(&mut self, call: CallNumber, event: &StreamMessage) -> Result<Option<RequestOutcome>> {
        let Ok(message) = serde_json::from_str::<Value>(&event.data) else { return Ok(None) };
        if let (Some("elicitation/create"), Some(id)) = (messages::method(&message), message.get("id")) {
            let number = marked(&message.to_string()).unwrap_or_default();
            self.record.add(HistoryEvent::Asked(self.session, number, id.to_string()));
            self.answer(id, call)?;
            return Ok(None);
        }
        if message.get("result").is_none() && message.get("error").is_none() {
            return Ok(None);
        }
        Ok(Some(self.note_answer(self.session, call, &message)))
    }

    /// Answers a question until the answer is accepted.
    fn answer(&mut self, question: &Value, call: CallNumber) -> Result<()> {
        let answer =
            json!({ "jsonrpc": "2.0", "id": question, "result": messages::accepted(call) }).to_string();
        for _ in 0..ATTEMPTS {
            let sent = self.post(&answer).and_then(|head| {
                self.connection()?.read_body()?;
                Ok(head.status)
            });
            match sent {
                Ok(202 | 404) => return Ok(()),
                Ok(_) => {}
                Err(_) => self.connection = None,
            }
            sleep(PAUSE);
        }
        Err(ErrorKind::TimedOut.into())
    }

    /// Notes the place of an event in its stream.
    pub(super) fn note_event(&self, event: &StreamMessage) {
        let place = event.id.as_deref().and_then(|id| {
            let (stream, position) = id.split_once('-')?;
            Some((u64::from_str_radix(stream, 16).ok()?, position.parse().ok()?))
        });
        if let Some((stream, position)) = place {
            let received = HistoryEvent::Received { session: self.session, stream, position: Some(position) };
            self.record.add(received);
        }
    }

    /// Resumes a stream after an event.
    pub(super) fn resume(&mut self, last: &str) -> Result<Resumption> {
        let (id, mut connection) = (
            self.session_id.clone(),
            match HttpConnection::open(self.address) {
                Ok(connection) => connection,
                Err(_) => return Ok(Resumption::Later),
            },
        );
        let mut headers = session_headers(&id).to_vec();
        headers.push(("Last-Event-ID", last));
        let Ok(head) = connection.request("GET", &headers, "") else { return Ok(Resumption::Later) };
        self.note_status(head.status);
        match head.status {
            200 => {
                self.record.count_resumed();
                Ok(Resumption::Open(connection))
            }
            400 => {
                self.record.add(HistoryEvent::NotResumed(self.session));
                Ok(Resumption::Over)
            }
            404 => Ok(Resumption::Over),
            _ => Ok(Resumption::Later),
        }
    }

    /// Opens a standalone stream; `None` if it has to be tried again.
    pub(super) fn listen(&mut self) -> Option<HttpConnection> {
        let id = self.session_id.clone();
        let mut connection = HttpConnection::open(self.address).ok()?;
        let head = connection.request("GET", &session_headers(&id), "").ok()?;
        self.note_status(head.status);
        (head.status == 200).then_some(connection)
    }

    /// Subscribes to the resource that changes.
    pub(super) fn subscribe(&mut self) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let params = json!({ "uri": messages::WATCHED });
            let sent = self.post(&messages::request("watch", "resources/subscribe", params));
            let body = sent.and_then(|head| Ok((head.status, self.connection()?.read_body()?)));
            if let Ok((200, body)) = body
                && body.contains("\"result\"")
            {
                self.record.add(HistoryEvent::Subscribed(self.session));
                return Ok(());
            }
            self.connection = None;
            sleep(PAUSE);
        }
        Err(ErrorKind::TimedOut.into())
    }

    /// Changes the resource; returns whether the server acknowledged it.
    pub(super) fn change(&mut self) -> bool {
        let params = messages::modern(call_params(messages::CHANGE, 0));
        let sent = self.post_modern(messages::CHANGE, &messages::request("change", "tools/call", params));
        let body = sent.and_then(|head| Ok((head.status, self.connection()?.read_body()?)));
        let is_changed = matches!(&body, Ok((200, body)) if body.contains("has changed"));
        if !is_changed {
            self.connection = None;
        }
        is_changed
    }

    /// Ends the session, finds it gone and opens the next one.
    fn replace_session(&mut self) -> Result<RequestOutcome> {
        let (id, old) = (self.session_id.clone(), self.session);
        self.record.add(HistoryEvent::Deleting(old));
        let head = self.send("DELETE", &session_headers(&id), "");
        let status = head.and_then(|head| {
            self.connection()?.read_body()?;
            Ok(head.status)
        });
        let outcome = match status {
            Ok(204) => {
                self.record.add(HistoryEvent::Deleted(old));
                // Every replica has to know, and the next request goes to the next one.
                for _ in 0..3 {
                    let ping = messages::request("ping", "ping", json!({}));
                    if self.post(&ping).and_then(|_| self.connection()?.read_body()).is_err() {
                        self.connection = None;
                    }
                }
                RequestOutcome::Answered
            }
            Ok(503) => RequestOutcome::Unavailable,
            Ok(502 | 504) => RequestOutcome::NoReplica,
            // A repeated DELETE of the balancer finds it gone.
            Ok(404) => RequestOutcome::Answered,
            Ok(status) => {
                self.record.note_unexpected(format!("{status} to DELETE"));
                RequestOutcome::Unexpected
            }
            Err(_) => RequestOutcome::Broken,
        };
        self.connection = None;
        self.open()?;
        Ok(outcome)
    }
}

/// What became of a resumption.
pub(super) enum Resumption {
    Open(HttpConnection),
    /// It may be possible later.
    Later,
    Over,
}

/// Whether a client drops the stream of a call by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamCut {
    Never,
    AfterFirstEvent,
}

fn session_headers(id: &str) -> [(&str, &str); 2] {
    [("Mcp-Session-Id", id), ("MCP-Protocol-Version", messages::LEGACY)]
}
