//! The W3C Trace Context of a request, in its `_meta`.
//!
//! See [Trace Context](https://www.w3.org/TR/trace-context/).

use std::fmt;

use crate::json::{JsonObject, RawJson};

/// The member of `_meta` that names the trace and the caller's span.
pub const TRACEPARENT: &str = "traceparent";
/// The member of `_meta` with vendor-specific trace state.
pub const TRACESTATE: &str = "tracestate";

/// The `tracestate` of a context without a span: a program that exports none made it, to find its log lines by the id.
const LOCAL_STATE: &str = "trunkline=local";

/// The longest `tracestate` that is propagated.
const MAX_STATE_LEN: usize = 512;

/// The trace that a request belongs to, and the span that sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; never zero.
    pub trace: TraceId,
    /// The caller's span; never zero.
    pub parent: SpanId,
    /// Whether the caller may have recorded its span.
    pub sampled: bool,
    /// The `tracestate`, verbatim; `None` if it is malformed or too long.
    pub state: Option<String>,
}

/// The name of a trace: 128 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub u128);

/// The name of a span: 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

impl TraceContext {
    /// Makes a context for a request without one. Its span is recorded nowhere; its `tracestate` marks that.
    pub fn local(trace: TraceId, parent: SpanId) -> Self {
        Self { trace, parent, sampled: false, state: Some(LOCAL_STATE.to_owned()) }
    }

    /// Reports whether the context was made by [`TraceContext::local`], here or by another trunkline before this one.
    pub fn is_local(&self) -> bool {
        self.state.as_deref() == Some(LOCAL_STATE)
    }

    /// Reads the trace from the `_meta` of a request; one that is malformed counts as none.
    pub fn read(meta: Option<&JsonObject>) -> Option<Self> {
        let meta = meta?;
        let state = meta.get(TRACESTATE).and_then(RawJson::as_text);
        Self::from_texts(&meta.get(TRACEPARENT)?.as_text()?, state.as_deref())
    }

    /// Reads the written forms of a `traceparent` and of its `tracestate`, which is left out if it is malformed.
    pub fn from_texts(parent: &str, state: Option<&str>) -> Option<Self> {
        let mut context = Self::parse(parent)?;
        context.state = state.filter(|text| is_state(text)).map(str::to_owned);
        Some(context)
    }

    /// Reads the written form of a `traceparent`: `VERSION-TRACE-PARENT-FLAGS` in lowercase hexadecimal.
    ///
    /// A version that is not known yet may have more after the flags; what is known of it is read.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace = TraceId(hex(parts.next()?, 32)?);
        let parent = SpanId(u64::try_from(hex(parts.next()?, 16)?).ok()?);
        let flags = hex(parts.next()?, 2)?;
        let more = parts.next().is_some();
        if version == 0xff || (version == 0 && more) || trace.0 == 0 || parent.0 == 0 {
            return None;
        }
        Some(Self { trace, parent, sampled: flags & 1 == 1, state: None })
    }
}

impl fmt::Display for TraceContext {
    /// Writes the `traceparent`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.parent, u8::from(self.sampled))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads exactly `digits` lowercase hexadecimal digits; the standard allows no others.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let lowercase = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() == digits && lowercase { u128::from_str_radix(text, 16).ok() } else { None }
}

/// Reports whether a text can be carried as a `tracestate`: a list of `key=value` in visible characters.
fn is_state(text: &str) -> bool {
    let entry = |entry: &str| {
        let (key, value) = entry.trim_matches([' ', '\t']).split_once('=').unwrap_or_default();
        !key.is_empty() && !value.is_empty() && !value.contains('=')
    };
    !text.is_empty()
        && text.len() <= MAX_STATE_LEN
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.split(',').count() <= 32
        && text.split(',').all(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn traceparent_is_parsed_strictly() {
        for (text, legible) in [
            (GOOD, true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true),
            ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-will-be", true),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", false),
            ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
            ("00-00000000000000000000000000000000-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false),
            ("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01", false),
            ("00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
            ("0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
            (" 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", false),
            ("", false),
        ] {
            assert_eq!(TraceContext::parse(text).is_some(), legible, "{text}");
        }
        assert_eq!(TraceContext::parse(GOOD).unwrap().to_string(), GOOD);
    }

    #[test]
    fn trace_context_is_read_from_request_meta() {
        for (meta, sampled, state) in [
            (format!(r#"{{"traceparent":"{GOOD}"}}"#), Some(true), None),
            (
                format!(r#"{{"traceparent":"{GOOD}","tracestate":"a=1, b@c=2"}}"#),
                Some(true),
                Some("a=1, b@c=2"),
            ),
            (format!(r#"{{"traceparent":"{GOOD}","tracestate":"a"}}"#), Some(true), None),
            (format!(r#"{{"traceparent":"{GOOD}","tracestate":"a=\u0000"}}"#), Some(true), None),
            (format!(r#"{{"traceparent":"{GOOD}","tracestate":"a={}"}}"#, "x".repeat(512)), Some(true), None),
            (r#"{"traceparent":7,"tracestate":"a=1"}"#.to_owned(), None, None),
            (r#"{"tracestate":"a=1"}"#.to_owned(), None, None),
        ] {
            let members = RawJson::parse(meta.clone()).unwrap().members().unwrap();
            let read = TraceContext::read(Some(&members));
            assert_eq!(read.as_ref().map(|context| context.sampled), sampled, "{meta}");
            assert_eq!(read.and_then(|context| context.state).as_deref(), state, "{meta}");
        }
        assert_eq!(TraceContext::read(None), None);
    }
}
