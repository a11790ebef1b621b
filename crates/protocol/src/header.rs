//! The value encoding of the headers that mirror a request's body, `Mcp-Name` and `Mcp-Param-*`.
//!
//! Printable ASCII is sent verbatim. Everything else is sent as `=?base64?…?=`, with lower-case markers and a
//! payload of padded standard Base64 of UTF-8.
//!
//! See [Value Encoding](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#value-encoding).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const OPENING: &str = "=?base64?";
const CLOSING: &str = "?=";

/// The reason why a mirrored header's value cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadHeaderValue {
    /// The value has a byte that must be encoded.
    #[error("header value has a byte that is not printable ASCII and is not Base64-encoded")]
    NotPlain,
    /// The payload between the markers is not padded standard Base64.
    #[error("header value is not valid padded Base64 between its markers")]
    NotBase64,
    /// The payload decodes to bytes that are not UTF-8.
    #[error("header value decodes to bytes that are not UTF-8")]
    NotUtf8,
}

/// Encodes a value for a header.
#[must_use]
pub fn encode_value(value: &str) -> Cow<'_, str> {
    if needs_no_encoding(value) {
        return Cow::Borrowed(value);
    }
    let mut encoded = String::with_capacity(OPENING.len() + value.len().div_ceil(3) * 4 + CLOSING.len());
    encoded.push_str(OPENING);
    STANDARD.encode_string(value, &mut encoded);
    encoded.push_str(CLOSING);
    Cow::Owned(encoded)
}

/// Decodes a header's value, borrowed if it was sent plain.
///
/// White space around the value is not part of it. A value with only one of the two markers, or with a marker
/// in another case, means itself.
///
/// # Errors
/// [`BadHeaderValue`] if the value is neither plain nor a well-formed encoding.
pub fn decode_value(header: &[u8]) -> Result<Cow<'_, str>, BadHeaderValue> {
    let value = trim_white_space(header);
    let payload =
        value.strip_prefix(OPENING.as_bytes()).and_then(|rest| rest.strip_suffix(CLOSING.as_bytes()));
    if let Some(payload) = payload {
        let bytes = STANDARD.decode(payload).map_err(|_| BadHeaderValue::NotBase64)?;
        return String::from_utf8(bytes).map(Cow::Owned).map_err(|_| BadHeaderValue::NotUtf8);
    }
    // A tab inside a value is legal in HTTP, although a careful sender encodes it.
    if !value.iter().all(|byte| is_plain(*byte) || *byte == b'\t') {
        return Err(BadHeaderValue::NotPlain);
    }
    std::str::from_utf8(value).map(Cow::Borrowed).map_err(|_| BadHeaderValue::NotPlain)
}

/// Reports whether a header's value decodes to exactly `expected`; a malformed one never does.
#[must_use]
pub fn matches(header: &[u8], expected: &str) -> bool {
    decode_value(header).is_ok_and(|value| value == expected)
}

fn needs_no_encoding(value: &str) -> bool {
    let edge_space = value.starts_with(' ') || value.ends_with(' ');
    // Readers may detect the encoding by its two markers alone, so a value where these overlap is encoded too.
    let looks_encoded = value.starts_with(OPENING) && value.ends_with(CLOSING);
    !edge_space && !looks_encoded && value.bytes().all(is_plain)
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7E)
}

fn trim_white_space(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
