//! JSON-RPC messages, read in one pass without copying.
//!
//! See [JSON-RPC 2.0](https://www.jsonrpc.org/specification) and
//! [Messages](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#messages).

mod deep;
mod legible_part;
mod member_search;

use std::borrow::Cow;

use bytestring::ByteString;

pub use self::legible_part::{LegiblePart, find_legible_part, is_cut_off};
pub(crate) use self::member_search::MemberSearch;
pub use self::member_search::OversizedMessage;
use crate::codec::RawResult;
use crate::json::{
    COMMON_KEYS, DistinctKeys, JsonKind, JsonObject, JsonScanner, MalformedJson, ObjectBuilder, ObjectKey,
    RawJson, ScanError,
};
use crate::member_case::MemberCaseCheck;
use crate::method::Method;
use crate::refusal::Refusal;
use crate::request_id::RequestId;
use crate::shorten::shorten;

/// The limits of a message.
#[derive(Clone, Copy, Debug)]
pub struct MessageLimits {
    /// The deepest nesting of arrays and objects. Default 64.
    pub depth: usize,
    /// The most messages in one batch. Default 32.
    pub batch: usize,
}

impl Default for MessageLimits {
    fn default() -> Self {
        Self { depth: 64, batch: 32 }
    }
}

/// One message, or the several of a batch.
#[derive(Debug)]
pub enum MessageOrBatch {
    /// A single message.
    One(Message),
    /// A batch, each element read on its own.
    Batch(Vec<Result<Message, MalformedMessage>>),
}

/// One JSON-RPC message.
#[derive(Debug)]
pub enum Message {
    /// A request, which expects a response.
    Request(Request),
    /// A notification, which expects none.
    Notification(Notification),
    /// The response to a request.
    Response(Response),
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The id to echo in the response.
    pub id: RequestId,
    /// The method's name.
    pub method: ByteString,
    /// The parameters.
    pub params: Params,
}

/// A notification.
#[derive(Clone, Debug)]
pub struct Notification {
    /// The method's name.
    pub method: ByteString,
    /// The parameters.
    pub params: Params,
}

/// The response to a request.
#[derive(Clone, Debug)]
pub struct Response {
    /// The request's token; absent when the peer could not read it.
    pub id: Option<RequestId>,
    /// The result, or the error as the peer wrote it.
    pub outcome: Result<RawResult, RawJson>,
}

/// The parameters of a request or notification, with `_meta` separate from the others.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// Every member but `_meta`.
    pub members: JsonObject,
    /// The members of `_meta`, if there is one.
    pub meta: Option<JsonObject>,
}

impl Params {
    /// Returns a member.
    pub fn get(&self, key: &str) -> Option<&RawJson> {
        self.members.get(key)
    }

    /// Returns a member that must be a string.
    ///
    /// # Errors
    /// [`Refusal::INVALID_PARAMS`] naming the member.
    pub fn text(&self, key: &str) -> Result<ByteString, Refusal> {
        self.read_text_with(key, RawJson::to_text)
    }

    /// Returns a member that must be a string, borrowed where possible.
    ///
    /// # Errors
    /// As [`Params::text`].
    pub fn borrowed_text(&self, key: &str) -> Result<Cow<'_, str>, Refusal> {
        self.read_text_with(key, RawJson::as_text)
    }

    fn read_text_with<'a, T>(
        &'a self,
        key: &str,
        read: impl FnOnce(&'a RawJson) -> Option<T>,
    ) -> Result<T, Refusal> {
        let problem = |what| Refusal::INVALID_PARAMS.with_message(format!("`{key}` {what}"));
        let value = self.members.get(key).ok_or_else(|| problem("is missing"))?;
        read(value).ok_or_else(|| problem("must be a string"))
    }
}

/// A rejected message, with the id for the error response if it was readable.
#[derive(Clone, Debug)]
pub struct MalformedMessage {
    /// The reason.
    pub refusal: Refusal,
    /// The id of the message, if it was readable.
    pub id: Option<RequestId>,
}

/// Reads the bytes of one message or batch.
///
/// # Errors
/// [`MalformedMessage`] with the row of the refusal table that fits: not JSON, nested too deep, not a message.
pub fn read(bytes: bytes::Bytes, bounds: MessageLimits) -> Result<MessageOrBatch, MalformedMessage> {
    let text = ByteString::try_from(bytes)
        .map_err(|_| without_id(Refusal::PARSE_ERROR.with_message("the message is not valid UTF-8")))?;
    read_text(&text, bounds)
}

/// Reads the bytes of one message or batch of a server.
///
/// A response that exceeds the depth limit is accepted, but its result is not parsed: the call that it answers can
/// read it in parts, or fail at once.
///
/// # Errors
/// As [`read`].
pub fn read_from_server(
    bytes: &bytes::Bytes,
    bounds: MessageLimits,
) -> Result<MessageOrBatch, MalformedMessage> {
    let text = ByteString::try_from(bytes.clone()).map_err(|_| {
        let refusal = Refusal::PARSE_ERROR.with_message("the message is not valid UTF-8");
        with_legible_part(without_id(refusal), bytes)
    })?;
    read_text(&text, bounds).or_else(|malformed| match deep::read_response(&text, bounds) {
        Some(response) => Ok(MessageOrBatch::One(Message::Response(response))),
        None => Err(with_legible_part(malformed, text.as_bytes())),
    })
}

/// Adds what can be read of a response although it is malformed.
#[cold]
fn with_legible_part(malformed: MalformedMessage, bytes: &[u8]) -> MalformedMessage {
    let Some(part) = find_legible_part(bytes) else { return malformed };
    MalformedMessage { id: malformed.id.or(part.id), ..malformed }
}

/// Reads the text of one message or batch.
///
/// # Errors
/// As [`read`].
pub fn read_text(text: &ByteString, bounds: MessageLimits) -> Result<MessageOrBatch, MalformedMessage> {
    let mut scanner = JsonScanner::new(text, bounds.depth);
    match scanner.peek() {
        Some(b'{') => read_object(text, bounds).map(MessageOrBatch::One),
        Some(b'[') => read_batch(text, bounds),
        _ => {
            scanner.skip();
            Err(without_id(match scanner.end() {
                Ok(()) => Refusal::INVALID_REQUEST.with_message("a message must be a JSON object"),
                Err(error) => unreadable(error, bounds),
            }))
        }
    }
}

#[cold]
fn without_id(refusal: Refusal) -> MalformedMessage {
    MalformedMessage { refusal, id: None }
}

#[cold]
fn unreadable(error: ScanError, bounds: MessageLimits) -> Refusal {
    match error {
        ScanError::Syntax => Refusal::PARSE_ERROR,
        ScanError::TooDeep => Refusal::INVALID_REQUEST
            .with_message(format!("the message nests deeper than {} levels", bounds.depth)),
    }
}

fn read_object(text: &ByteString, bounds: MessageLimits) -> Result<Message, MalformedMessage> {
    let mut scanner = JsonScanner::new(text, bounds.depth);
    let mut envelope = MessageEnvelope::default();
    envelope.scan(&mut scanner, text);
    match scanner.end() {
        Ok(()) => envelope.classify(),
        Err(error) => Err(without_id(unreadable(error, bounds))),
    }
}

fn read_batch(text: &ByteString, bounds: MessageLimits) -> Result<MessageOrBatch, MalformedMessage> {
    let elements = scan_elements(text, bounds).map_err(|error| without_id(unreadable(error, bounds)))?;
    if elements.is_empty() {
        return Err(without_id(Refusal::INVALID_REQUEST.with_message("a batch must not be empty")));
    }
    if elements.len() > bounds.batch {
        let message = format!("a batch may hold at most {} messages", bounds.batch);
        return Err(without_id(Refusal::INVALID_REQUEST.with_message(message)));
    }
    let read_one = |element: RawJson| match element.kind() {
        JsonKind::Object => read_object(element.text(), bounds),
        _ => Err(without_id(Refusal::INVALID_REQUEST.with_message("a message must be a JSON object"))),
    };
    Ok(MessageOrBatch::Batch(elements.into_iter().map(read_one).collect()))
}

/// Reads the elements of an array, up to the batch limit and one more, which is enough to reject it.
fn scan_elements(text: &ByteString, bounds: MessageLimits) -> Result<Vec<RawJson>, ScanError> {
    let mut scanner = JsonScanner::new(text, bounds.depth);
    let mut elements = Vec::new();
    scanner.open_array();
    while scanner.next_element(elements.is_empty()) {
        let Some(element) = scanner.value() else { break };
        if elements.len() <= bounds.batch {
            elements.push(element);
        }
    }
    scanner.end()?;
    Ok(elements)
}

/// The names of the members of an envelope.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Their indices.
const VERSION: usize = 0;
const ID: usize = 1;
const METHOD: usize = 2;
const PARAMS: usize = 3;
const RESULT: usize = 4;
const ERROR: usize = 5;

/// The members of a message before it is known which kind it is.
#[derive(Default)]
struct MessageEnvelope {
    /// The first fault of the members themselves.
    fault: Option<String>,
    case: MemberCaseCheck,
    version_ok: bool,
    id: Option<Result<RequestId, InvalidId>>,
    method: Option<ByteString>,
    params: Option<Params>,
    result: Option<RawResult>,
    error: Option<RawJson>,
}

impl MessageEnvelope {
    /// Reads every member to the end, so that a message with a fault can still be answered under its id.
    fn scan(&mut self, scanner: &mut JsonScanner<'_>, text: &ByteString) {
        let mut version_seen = false;
        let mut others: Option<DistinctKeys<'_>> = None;
        let mut wrong = None;
        let mut first = true;
        scanner.open_object();
        while let Some(key) = scanner.next_key(first, MEMBERS) {
            first = false;
            let repeated = match key.among(&MEMBERS) {
                Some(VERSION) => {
                    self.version_ok =
                        scanner.take_exactly("\"2.0\"") || scanner.value_text() == Some("\"2.0\"");
                    std::mem::replace(&mut version_seen, true)
                }
                Some(ID) => fill(&mut self.id, read_id(scanner)),
                Some(METHOD) => match read_method(scanner, text) {
                    Some(method) => fill(&mut self.method, Some(method)),
                    None => self.note("`method` must be a string"),
                },
                Some(PARAMS) if scanner.peek() == Some(b'{') => {
                    let params = Params::scan(scanner, text, &mut self.fault, &mut self.case);
                    fill(&mut self.params, Some(params))
                }
                Some(PARAMS) => {
                    scanner.skip();
                    self.note("`params` must be an object")
                }
                Some(RESULT) => fill(&mut self.result, RawResult::scan(scanner)),
                Some(ERROR) => fill(&mut self.error, scanner.value()),
                _ => {
                    self.case.envelope(&key, &MEMBERS);
                    others.get_or_insert_default().add(key.read(), &mut wrong);
                    scanner.skip();
                    continue;
                }
            };
            if repeated {
                self.note(&format!("duplicate member `{}`", &*key));
            }
        }
        if let Some(wrong) = wrong {
            self.note(&wrong.to_string());
        }
    }

    /// Records a fault, of which only the first is reported. Returns false, since the member is not a duplicate.
    #[cold]
    fn note(&mut self, fault: &str) -> bool {
        self.fault.get_or_insert_with(|| fault.to_owned());
        false
    }

    fn classify(self) -> Result<Message, MalformedMessage> {
        let unusable = self.id.as_ref().and_then(|id| id.as_ref().err().copied());
        let id = self.id.and_then(Result::ok);
        if let Some(fault) = self.fault {
            // A fault may name a member, and a member's name may be as long as a message.
            let message = format!("the message is not a valid JSON-RPC message: {}", shorten(&fault));
            return Err(MalformedMessage { refusal: Refusal::INVALID_REQUEST.with_message(message), id });
        }
        let fail = |why: &'static str, id: Option<RequestId>| {
            Err(MalformedMessage { refusal: Refusal::INVALID_REQUEST.with_message(why), id })
        };
        if !self.version_ok {
            return fail("`jsonrpc` must be \"2.0\"", id);
        }
        // An error response to a message with an unreadable id has `"id": null` (JSON-RPC 2.0 §5).
        if unusable.is_some_and(|why| why != InvalidId::Null || self.error.is_none()) {
            return fail("`id` must be a string or an integer of reasonable length", id);
        }
        // A response is not forwarded verbatim, so no other decoder reads its members.
        if let Some(refusal) = self.case.refusal().filter(|_| self.method.is_some()) {
            return Err(MalformedMessage { refusal, id });
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => {
                let params = self.params.unwrap_or_default();
                Ok(match id {
                    Some(id) => Message::Request(Request { id, method, params }),
                    None => Message::Notification(Notification { method, params }),
                })
            }
            (Some(_), _, _) => fail("a message has either `method` or one of `result` and `error`", id),
            (None, Some(_), Some(_)) => fail("a response has `result` or `error`, not both", id),
            (None, Some(_), None) if id.is_none() => fail("a result needs an `id`", id),
            (None, Some(result), None) => Ok(Message::Response(Response { id, outcome: Ok(result) })),
            (None, None, Some(error)) => Ok(Message::Response(Response { id, outcome: Err(error) })),
            (None, None, None) => fail("`method` is missing", id),
        }
    }
}

/// The reason why an `id` is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InvalidId {
    Null,
    Other,
}

fn read_id(scanner: &mut JsonScanner<'_>) -> Option<Result<RequestId, InvalidId>> {
    // Nearly all are numbers.
    if let Some(number) = scanner.natural() {
        return Some(Ok(RequestId::from_number(number)));
    }
    let raw = scanner.value()?;
    let why = if raw.is_null() { InvalidId::Null } else { InvalidId::Other };
    Some(RequestId::from_raw(raw).ok_or(why))
}

/// Takes the next string as a shared one: a constant for the most common methods, which saves the reference count.
fn read_method(scanner: &mut JsonScanner<'_>, text: &ByteString) -> Option<ByteString> {
    const COMMONEST: &str = Method::ToolsCall.as_str();
    if scanner.take_exactly("\"tools/call\"") {
        return Some(ByteString::from_static(COMMONEST));
    }
    if scanner.peek() != Some(b'"') {
        scanner.skip();
        return None;
    }
    let method = scanner.string()?;
    Some(match scanner.read(method)? {
        Cow::Borrowed(method) => text.slice_ref(method),
        Cow::Owned(method) => method.into(),
    })
}

/// Fills a member that is still empty, keeping the first value; reports whether it was not.
fn fill<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    if slot.is_some() {
        return true;
    }
    *slot = value;
    false
}

impl Params {
    /// Reads the next object; stores the first problem other than its grammar in `fault`.
    fn scan(
        scanner: &mut JsonScanner<'_>,
        text: &ByteString,
        fault: &mut Option<String>,
        case: &mut MemberCaseCheck,
    ) -> Self {
        let mut members = ObjectBuilder::new();
        let mut meta = None;
        let mut wrong = None;
        let mut first = true;
        scanner.open_object();
        while let Some(key) = scanner.next_key(first, COMMON_KEYS) {
            first = false;
            if &*key != "_meta" {
                let Some(value) = scanner.distinct_value(&mut wrong) else { break };
                if let (ObjectKey::Other(name), None) = (&key, &wrong) {
                    case.param(name, &value);
                }
                members.add(key.share(text), value, &mut wrong);
            } else if scanner.peek() == Some(b'{') {
                let read = JsonObject::scan(scanner, text, &mut wrong, |name| case.meta(name));
                if fill(&mut meta, Some(read)) {
                    wrong.get_or_insert(MalformedJson::Duplicate("_meta".to_owned()));
                }
            } else {
                scanner.skip();
                fault.get_or_insert_with(|| "`_meta` must be an object".to_owned());
            }
        }
        if let Some(wrong) = wrong {
            fault.get_or_insert_with(|| wrong.to_string());
        }
        Self { members: members.members, meta }
    }
}
