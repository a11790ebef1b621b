//! Comparing an argument with the header that mirrors it.
//!
//! See [Server Behavior for Custom Headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#server-behavior-for-custom-headers).

use std::borrow::Cow;

use serde_json::{Number, Value};

use super::{MirrorKind, MismatchReason};
use crate::header::decode_value;

/// The largest integer that every JSON reader represents exactly, 2^53 - 1.
const MAX_INTEGER: i128 = (1 << 53) - 1;

/// The outcome of comparing an argument with its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderComparison {
    Agree,
    Disagree(MismatchReason),
}

/// Compares one argument, `None` if absent or null, with its header.
pub(super) fn compare(kind: MirrorKind, argument: Option<&Value>, header: Option<&[u8]>) -> HeaderComparison {
    let mirrored = argument.and_then(|argument| Some((argument, header_text(argument)?)));
    let reason = match (mirrored, header) {
        (None, None) => return HeaderComparison::Agree,
        (None, Some(_)) => MismatchReason::Unexpected,
        (Some(_), None) => MismatchReason::Missing,
        (Some((argument, text)), Some(header)) => match decode_value(header) {
            Err(_) => MismatchReason::Undecodable,
            Ok(sent) if kind == MirrorKind::Integer => return compare_integers(argument, &text, &sent),
            Ok(sent) if sent == text => return HeaderComparison::Agree,
            Ok(_) => MismatchReason::Different,
        },
    };
    HeaderComparison::Disagree(reason)
}

/// Returns the text that mirrors a value; lists and objects have none.
///
/// A value of another type than the schema's is still mirrored by its own text, so that the refusal a caller
/// sees is the schema's and not one about headers.
pub(super) fn header_text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(true) => Some(Cow::Borrowed("true")),
        Value::Bool(false) => Some(Cow::Borrowed("false")),
        Value::Number(number) => Some(Cow::Owned(match integer_in_body(number) {
            Some(integer) if is_exact(integer) => integer.to_string(),
            _ => number.to_string(),
        })),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn compare_integers(argument: &Value, text: &str, sent: &str) -> HeaderComparison {
    let agree = match argument.as_number().and_then(integer_in_body) {
        Some(integer) if !is_exact(integer) => {
            return HeaderComparison::Disagree(MismatchReason::OutOfRange);
        }
        Some(integer) => integer_in_header(sent) == Some(integer),
        None => sent == text,
    };
    if agree { HeaderComparison::Agree } else { HeaderComparison::Disagree(MismatchReason::Different) }
}

/// Reads a JSON number as an integer; `5.0` and `5e0` are the integer 5 too.
fn integer_in_body(number: &Number) -> Option<i128> {
    let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    // The cast saturates, far beyond the integers that may be mirrored.
    whole.or_else(|| number.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as i128))
}

/// Reads a header's decimal integer, leading zeros and a fraction of zeros allowed.
fn integer_in_header(text: &str) -> Option<i128> {
    let digits = match text.split_once('.') {
        Some((digits, fraction)) if !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0') => {
            digits
        }
        Some(_) => return None,
        None => text,
    };
    // The number parser would also take a plus sign, which no mirrored integer has.
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

fn is_exact(integer: i128) -> bool {
    (-MAX_INTEGER..=MAX_INTEGER).contains(&integer)
}
