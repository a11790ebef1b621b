//! Parameters in the format `application/x-www-form-urlencoded`, for queries and for bodies of token requests
//! ([RFC 6749 appendix B](https://www.rfc-editor.org/rfc/rfc6749#appendix-B)).

use std::fmt::Write as _;

/// The number of parameters that are decoded; further ones are ignored.
pub const MAX_FORM_PARAMETERS: usize = 64;

/// Parameters being encoded. It has no `Debug` output, since parameters may be secrets.
#[derive(Default)]
pub(crate) struct FormParameters {
    encoded: String,
}

impl FormParameters {
    pub(crate) fn push(&mut self, name: &str, value: &str) {
        if !self.encoded.is_empty() {
            self.encoded.push('&');
        }
        encode_into(&mut self.encoded, name);
        self.encoded.push('=');
        encode_into(&mut self.encoded, value);
    }

    pub(crate) fn push_some(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }

    pub(crate) fn finish(self) -> String {
        self.encoded
    }
}

/// Encodes one value.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::new();
    encode_into(&mut encoded, text);
    encoded
}

fn encode_into(encoded: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => {
                encoded.push(char::from(byte));
            }
            b' ' => encoded.push('+'),
            byte => {
                // Writing to a string does not fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
}

/// Decodes parameters in their order. Bytes that are no UTF-8 are replaced, and a `%` without digits stays.
pub fn decode(text: &str) -> Vec<(String, String)> {
    let parts = text.split('&').filter(|part| !part.is_empty()).take(MAX_FORM_PARAMETERS);
    parts
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decode_one(name), decode_one(value))
        })
        .collect()
}

fn decode_one(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        rest = after;
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => match (digit(after.first()), digit(after.get(1))) {
                (Some(high), Some(low)) => {
                    decoded.push(u8::try_from(high * 16 + low).unwrap_or_default());
                    rest = after.get(2..).unwrap_or_default();
                }
                _ => decoded.push(b'%'),
            },
            byte => decoded.push(*byte),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn form_values_are_encoded_as_the_url_standard_does() {
        let table = [
            ("", ""),
            ("abcXYZ019*-._", "abcXYZ019*-._"),
            ("a b", "a+b"),
            ("https://h/a?b=c&d", "https%3A%2F%2Fh%2Fa%3Fb%3Dc%26d"),
            ("ü~+", "%C3%BC%7E%2B"),
        ];
        for (text, expected) in table {
            assert_eq!(encode(text), expected);
        }
    }

    #[test]
    fn form_values_are_decoded_leniently() {
        let table = [
            ("a=b&c", "a=b|c="),
            ("&&a=%20+%zz%4", "a=  %zz%4"),
            ("a=b=c", "a=b=c"),
            ("a=%FF", "a=\u{fffd}"),
        ];
        for (text, expected) in table {
            let parts: Vec<String> =
                decode(text).iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(parts.join("|"), expected);
        }
        assert_eq!(decode(&"a=b&".repeat(1000)).len(), MAX_FORM_PARAMETERS);
    }

    proptest! {
        #[test]
        fn form_values_round_trip(name in "\\PC{1,20}", value in "\\PC{0,40}") {
            let mut form = FormParameters::default();
            form.push(&name, &value);
            form.push_some("next", Some("x"));
            let expected = vec![(name, value), ("next".to_owned(), "x".to_owned())];
            prop_assert_eq!(decode(&form.finish()), expected);
        }
    }
}
