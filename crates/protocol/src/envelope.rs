//! JSON-RPC messages, read in one pass without copying.

use std::fmt;

use bytestring::ByteString;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::id::Id;
use crate::json::{JsonKind, KeySeed, Members, MembersSeed, Raw, TextSeed, nests_deeper_than, shared_key};
use crate::refusal::Refusal;
use crate::shorten::shorten;

/// The bounds that a message must keep.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The deepest nesting of arrays and objects. Default 64.
    pub depth: usize,
    /// The most messages in one batch. Default 32.
    pub batch: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { depth: 64, batch: 32 }
    }
}

/// One message, or the several of a batch.
#[derive(Debug)]
pub enum Incoming {
    /// A single message.
    One(Message),
    /// A batch, each element read on its own.
    Batch(Vec<Result<Message, Malformed>>),
}

/// One JSON-RPC message.
#[derive(Debug)]
pub enum Message {
    /// A request, which wants an answer.
    Request(Request),
    /// A notification, which wants none.
    Notification(Notification),
    /// The answer to a request.
    Response(Response),
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The token to answer with.
    pub id: Id,
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

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Response {
    /// The request's token; absent when the peer could not read it.
    pub id: Option<Id>,
    /// The result, or the error as the peer wrote it.
    pub outcome: Result<Raw, Raw>,
}

/// The parameters of a request or notification, with `_meta` taken apart from the others.
#[derive(Clone, Debug, Default)]
pub struct Params {
    /// Every member but `_meta`.
    pub members: Members,
    /// The members of `_meta`, if there is one.
    pub meta: Option<Members>,
}

impl Params {
    /// Returns a member.
    pub fn get(&self, key: &str) -> Option<&Raw> {
        self.members.get(key)
    }

    /// Returns a member that must be a string.
    ///
    /// # Errors
    /// [`Refusal::INVALID_PARAMS`] naming the member.
    pub fn text(&self, key: &str) -> Result<ByteString, Refusal> {
        let problem = |what| Refusal::INVALID_PARAMS.because(format!("`{key}` {what}"));
        let value = self.members.get(key).ok_or_else(|| problem("is missing"))?;
        value.to_text().ok_or_else(|| problem("must be a string"))
    }
}

/// A message that cannot be taken, with the id to answer under where one could be read.
#[derive(Clone, Debug)]
pub struct Malformed {
    /// Why.
    pub refusal: Refusal,
    /// The id that the message had, if it was legible.
    pub id: Option<Id>,
}

/// Reads the bytes of one message or batch.
///
/// # Errors
/// [`Malformed`] with the row of the refusal table that fits: not JSON, nested too deep, not a message.
pub fn read(bytes: bytes::Bytes, bounds: Bounds) -> Result<Incoming, Malformed> {
    let text = ByteString::try_from(bytes)
        .map_err(|_| plain(Refusal::PARSE_ERROR.because("the message is not valid UTF-8")))?;
    read_text(&text, bounds)
}

/// Reads the text of one message or batch.
///
/// # Errors
/// As [`read`].
pub fn read_text(text: &ByteString, bounds: Bounds) -> Result<Incoming, Malformed> {
    if nests_deeper_than(text.as_bytes(), bounds.depth) {
        let message = format!("the message nests deeper than {} levels", bounds.depth);
        return Err(plain(Refusal::INVALID_REQUEST.because(message)));
    }
    match parse_object(text) {
        Ok(envelope) => envelope.classify().map(Incoming::One),
        Err(error) => read_unusual(text, bounds, &error),
    }
}

fn plain(refusal: Refusal) -> Malformed {
    Malformed { refusal, id: None }
}

fn parse_object(text: &ByteString) -> Result<Envelope, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let envelope = EnvelopeSeed(text).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(envelope)
}

/// Reads what the fast path could not: a batch, or a message whose fault must be named.
fn read_unusual(text: &ByteString, bounds: Bounds, error: &serde_json::Error) -> Result<Incoming, Malformed> {
    let Ok(value) = Raw::parse(text.clone()) else {
        return Err(plain(Refusal::PARSE_ERROR));
    };
    match value.kind() {
        JsonKind::Array => read_batch(&value, bounds),
        JsonKind::Object => Err(Malformed {
            refusal: Refusal::INVALID_REQUEST.because(name_fault(error)),
            id: legible_id(&value),
        }),
        _ => Err(plain(Refusal::INVALID_REQUEST.because("a message must be a JSON object"))),
    }
}

fn name_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // The position is about our parser's view and helps nobody across the wire.
    let fault = text.split(" at line ").next().unwrap_or_default();
    // The fault may quote what the peer wrote, all of it.
    format!("the message is not a valid JSON-RPC message: {}", shorten(fault))
}

/// Finds the id of a message that is otherwise broken, taking the first where there are two.
fn legible_id(object: &Raw) -> Option<Id> {
    struct FirstId<'s>(&'s ByteString);
    impl<'de> Visitor<'de> for FirstId<'de> {
        type Value = Option<Id>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Id>, A::Error> {
            let mut id = None;
            while let Some(key) = map.next_key_seed(KeySeed)? {
                let value: &'de RawValue = map.next_value()?;
                if key == "id" && id.is_none() {
                    id = Id::from_raw(Raw::trusted(self.0.slice_ref(value.get())));
                }
            }
            Ok(id)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(object.as_str());
    serde::Deserializer::deserialize_map(&mut deserializer, FirstId(object.text())).ok().flatten()
}

fn read_batch(array: &Raw, bounds: Bounds) -> Result<Incoming, Malformed> {
    // Elements weigh more than their text, so that those of a batch which is too large are not gathered first.
    let Some(elements) = array.elements_within(bounds.batch).map_err(|_| plain(Refusal::PARSE_ERROR))? else {
        let message = format!("a batch may hold at most {} messages", bounds.batch);
        return Err(plain(Refusal::INVALID_REQUEST.because(message)));
    };
    if elements.is_empty() {
        return Err(plain(Refusal::INVALID_REQUEST.because("a batch must not be empty")));
    }
    let read_one = |element: Raw| match parse_object(element.text()) {
        Ok(envelope) => envelope.classify(),
        Err(error) => Err(Malformed {
            refusal: Refusal::INVALID_REQUEST.because(name_fault(&error)),
            id: legible_id(&element),
        }),
    };
    Ok(Incoming::Batch(elements.into_iter().map(read_one).collect()))
}

/// The members of a message before it is known which kind it is.
#[derive(Default)]
struct Envelope {
    version_ok: bool,
    id: Option<Raw>,
    method: Option<ByteString>,
    params: Option<Params>,
    result: Option<Raw>,
    error: Option<Raw>,
}

impl Envelope {
    fn classify(self) -> Result<Message, Malformed> {
        let id = self.id.clone().and_then(Id::from_raw);
        let fail = |why: &'static str| {
            Err(Malformed { refusal: Refusal::INVALID_REQUEST.because(why), id: id.clone() })
        };
        if !self.version_ok {
            return fail("`jsonrpc` must be \"2.0\"");
        }
        if self.id.is_some() && id.is_none() && !self.is_error_without_id() {
            return fail("`id` must be a string or a number of reasonable length");
        }
        match (self.method, self.result, self.error) {
            (Some(method), None, None) => {
                let params = self.params.unwrap_or_default();
                Ok(match id {
                    Some(id) => Message::Request(Request { id, method, params }),
                    None => Message::Notification(Notification { method, params }),
                })
            }
            (Some(_), _, _) => fail("a message has either `method` or one of `result` and `error`"),
            (None, Some(_), Some(_)) => fail("a response has `result` or `error`, not both"),
            (None, Some(_), None) if id.is_none() => fail("a result needs an `id`"),
            (None, Some(result), None) => Ok(Message::Response(Response { id, outcome: Ok(result) })),
            (None, None, Some(error)) => Ok(Message::Response(Response { id, outcome: Err(error) })),
            (None, None, None) => fail("`method` is missing"),
        }
    }

    /// An error response to a message whose id could not be read has `"id": null`.
    fn is_error_without_id(&self) -> bool {
        self.error.is_some() && self.id.as_ref().is_some_and(Raw::is_null)
    }
}

struct EnvelopeSeed<'s>(&'s ByteString);

impl<'de> DeserializeSeed<'de> for EnvelopeSeed<'de> {
    type Value = Envelope;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Envelope, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EnvelopeSeed<'de> {
    type Value = Envelope;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope, A::Error> {
        let mut envelope = Envelope::default();
        let mut version_seen = false;
        let duplicate = |key: &str| A::Error::custom(format_args!("duplicate member `{key}`"));
        while let Some(key) = map.next_key_seed(KeySeed)? {
            let raw = |map: &mut A| -> Result<Raw, A::Error> {
                let value: &'de RawValue = map.next_value()?;
                Ok(Raw::trusted(self.0.slice_ref(value.get())))
            };
            let repeated = match &*key {
                "jsonrpc" => {
                    let version: &'de RawValue = map.next_value()?;
                    envelope.version_ok = version.get() == "\"2.0\"";
                    std::mem::replace(&mut version_seen, true)
                }
                "id" => envelope.id.replace(raw(&mut map)?).is_some(),
                "method" => envelope.method.replace(map.next_value_seed(TextSeed(self.0))?).is_some(),
                "params" => envelope.params.replace(map.next_value_seed(ParamsSeed(self.0))?).is_some(),
                "result" => envelope.result.replace(raw(&mut map)?).is_some(),
                "error" => envelope.error.replace(raw(&mut map)?).is_some(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    false
                }
            };
            if repeated {
                return Err(duplicate(&key));
            }
        }
        Ok(envelope)
    }
}

/// No method has a tenth of this; the bound keeps the linear look for equal keys cheap.
const MOST_PARAMS: usize = 128;

struct ParamsSeed<'s>(&'s ByteString);

impl<'de> DeserializeSeed<'de> for ParamsSeed<'de> {
    type Value = Params;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Params, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ParamsSeed<'de> {
    type Value = Params;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object as `params`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Params, A::Error> {
        let mut params = Params::default();
        while let Some(key) = map.next_key_seed(KeySeed)? {
            if key == "_meta" {
                let meta = map.next_value_seed(MembersSeed(self.0))?;
                if params.meta.replace(meta).is_some() {
                    return Err(A::Error::custom("duplicate member `_meta`"));
                }
                continue;
            }
            let value: &'de RawValue = map.next_value()?;
            let value = Raw::trusted(self.0.slice_ref(value.get()));
            params.members.push_unique(shared_key(self.0, key), value, MOST_PARAMS)?;
        }
        Ok(params)
    }
}
