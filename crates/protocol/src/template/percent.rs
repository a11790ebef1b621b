//! Percent encoding.

use std::borrow::Cow;

const HEX_DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Reports whether a byte never needs encoding.
pub(super) fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Reports whether a byte has a meaning of its own in URIs.
pub(super) fn is_reserved(byte: u8) -> bool {
    b":/?#[]@!$&'()*+,;=".contains(&byte)
}

/// Reports whether a text begins with `%` and two hexadecimal digits.
pub(super) fn is_escape(text: &str) -> bool {
    matches!(text.as_bytes(), [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// Appends every byte as an escape.
pub(super) fn encode_into(out: &mut String, bytes: &[u8]) {
    let digit = |value: u8| HEX_DIGITS.get(usize::from(value & 0xF)).map_or('0', |digit| char::from(*digit));
    for byte in bytes {
        out.extend(['%', digit(byte >> 4), digit(*byte)]);
    }
}

/// Brings a URI into the one spelling that matching compares: ASCII with upper-case escapes.
///
/// `None` means that the text has a control character or a `%` that starts no escape.
pub(super) fn canonical(uri: &str) -> Option<Cow<'_, str>> {
    if uri.bytes().any(|byte| byte.is_ascii_control()) {
        return None;
    }
    if uri.is_ascii() && !uri.contains('%') {
        return Some(Cow::Borrowed(uri));
    }
    let mut out = String::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'%' => {
                let [high, low, after @ ..] = rest else { return None };
                if !(high.is_ascii_hexdigit() && low.is_ascii_hexdigit()) {
                    return None;
                }
                out.extend([
                    '%',
                    char::from(high.to_ascii_uppercase()),
                    char::from(low.to_ascii_uppercase()),
                ]);
                rest = after;
            }
            byte if byte.is_ascii() => out.push(char::from(*byte)),
            byte => encode_into(&mut out, &[*byte]),
        }
    }
    Some(Cow::Owned(out))
}

/// Decodes every escape; `None` means a broken escape or a result that is not UTF-8.
pub(super) fn decode(text: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, after @ ..] = rest else { return None };
        let value = |digit: u8| char::from(digit).to_digit(16);
        bytes.push(u8::try_from(value(*high)? << 4 | value(*low)?).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}
