use std::borrow::Cow;

use proptest::prelude::*;
use trunkline_protocol::header::{BadHeaderValue, decode_value, encode_value, matches};

#[test]
fn header_values_are_written_plain_or_base64() {
    let table = [
        ("", ""),
        ("us-west1", "us-west1"),
        ("two words", "two words"),
        ("~!\"#", "~!\"#"),
        (" lead", "=?base64?IGxlYWQ=?="),
        ("trail ", "=?base64?dHJhaWwg?="),
        ("a\tb", "=?base64?YQli?="),
        ("a\r\nb", "=?base64?YQ0KYg==?="),
        ("\u{7f}", "=?base64?fw==?="),
        ("Zürich", "=?base64?WsO8cmljaA==?="),
        ("日本語", "=?base64?5pel5pys6Kqe?="),
        ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
        ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
        ("=?BASE64?eA==?=", "=?BASE64?eA==?="),
        ("=?base64?eA==", "=?base64?eA=="),
        ("eA==?=", "eA==?="),
    ];
    for (value, expected) in table {
        assert_eq!(encode_value(value), expected, "value {value:?}");
        assert_eq!(decode_value(expected.as_bytes()).as_deref(), Ok(value), "header {expected:?}");
    }
}

#[test]
fn header_values_are_read_strictly() {
    let table: [(&[u8], Result<&str, BadHeaderValue>); 17] = [
        (b"  padded \t", Ok("padded")),
        (b" \t ", Ok("")),
        (b"inner\ttab", Ok("inner\ttab")),
        (b"\t=?base64?eA==?= ", Ok("x")),
        (b"=?base64??=", Ok("")),
        (b"=?base64?=", Ok("=?base64?=")),
        (b"=?Base64?eA==?=", Ok("=?Base64?eA==?=")),
        (b"x=?base64?eA==?=", Ok("x=?base64?eA==?=")),
        (b"=?base64?eA?=", Err(BadHeaderValue::NotBase64)),
        (b"=?base64?eA=?=", Err(BadHeaderValue::NotBase64)),
        (b"=?base64?eB==?=", Err(BadHeaderValue::NotBase64)),
        (b"=?base64?e A==?=", Err(BadHeaderValue::NotBase64)),
        (b"=?base64?-_-_?=", Err(BadHeaderValue::NotBase64)),
        (b"=?base64?/w==?=", Err(BadHeaderValue::NotUtf8)),
        (b"Z\xC3\xBCrich", Err(BadHeaderValue::NotPlain)),
        (b"a\x00b", Err(BadHeaderValue::NotPlain)),
        (b"a\x7F", Err(BadHeaderValue::NotPlain)),
    ];
    for (header, expected) in table {
        let shown = String::from_utf8_lossy(header);
        assert_eq!(decode_value(header).as_deref(), expected.as_deref(), "header {shown:?}");
    }
}

#[test]
fn plain_header_values_are_borrowed() {
    assert!(matches!(encode_value("plain"), Cow::Borrowed(_)));
    assert!(matches!(decode_value(b" plain "), Ok(Cow::Borrowed("plain"))));
}

#[test]
fn header_match_compares_decoded_values_case_sensitively() {
    let table: [(&[u8], &str, bool); 6] = [
        (b" add ", "add", true),
        (b"=?base64?YWRk?=", "add", true),
        (b"Add", "add", false),
        (b"add", " add", false),
        (b"=?base64?YWRk?", "add", false),
        (b"=?base64?YWR?=", "add", false),
    ];
    for (header, expected, verdict) in table {
        assert_eq!(matches(header, expected), verdict, "header {:?}", String::from_utf8_lossy(header));
    }
}

proptest! {
    #[test]
    fn any_text_round_trips_through_a_header(value in any::<String>()) {
        let encoded = encode_value(&value);
        prop_assert!(encoded.bytes().all(|byte| matches!(byte, 0x20..=0x7E)));
        prop_assert_eq!(encoded.trim_matches(' '), encoded.as_ref());
        prop_assert_eq!(decode_value(encoded.as_bytes()), Ok(Cow::Borrowed(value.as_str())));
        prop_assert!(matches(encoded.as_bytes(), &value));
    }

    #[test]
    fn decodable_header_has_exactly_one_value(payload in any::<Vec<u8>>(), wrapped in any::<bool>()) {
        let header = if wrapped { [b"=?base64?", payload.as_slice(), b"?="].concat() } else { payload };
        if let Ok(value) = decode_value(&header) {
            let encoded = encode_value(&value);
            prop_assert_eq!(decode_value(encoded.as_bytes()), Ok(value.clone()));
        }
    }
}
