//! Bytes that are not one JSON text.

use super::{MessageCase, NOT_A_MESSAGE, NOT_JSON};

/// A message that would be right.
const GOOD: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

pub(super) fn rows() -> Vec<MessageCase> {
    let mut rows: Vec<MessageCase> = texts().into_iter().map(not_json).collect();
    rows.extend(bytes().into_iter().map(|(name, bytes)| MessageCase::new(name, bytes).everywhere(NOT_JSON)));
    // A line ends at its line feed, so that these are other messages on a channel.
    rows.extend(
        ["", " ", "\t\r\n ", "{\n\"jsonrpc\"\n:", "\"a\nb\""].map(|text| not_json(text).on_http_only()),
    );
    rows.extend(depths());
    rows
}

fn not_json(text: impl Into<String>) -> MessageCase {
    let text = text.into();
    MessageCase::new(format!("not JSON: {text:.40}"), text).everywhere(NOT_JSON)
}

fn texts() -> Vec<String> {
    let broken = [
        "{",
        "}",
        "[",
        "]",
        "{]",
        "[}",
        "{\"",
        "\"",
        "nul",
        "tru",
        "falsee",
        "nulll",
        "undefined",
        "NaN",
        "-Infinity",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "01",
        "0x10",
        "1 2",
        "{} {}",
        "[][]",
        "null null",
        "hello",
        "<xml/>",
        "GET / HTTP/1.1",
        "{,}",
        "[1,]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "{'a':1}",
        "/**/{}",
        "// x",
        "\"\\x41\"",
        "\"\\u12\"",
        "\"\\u{41}\"",
        "\"a\tb\"",
        "\"\u{1}\"",
        "\u{feff}1",
    ];
    let around = [
        format!("{GOOD}x"),
        format!("{GOOD}{GOOD}"),
        format!("{GOOD},"),
        format!("{GOOD}]"),
        format!("{GOOD}\0"),
        format!("\0{GOOD}"),
        format!("\u{feff}{GOOD}"),
        format!("{GOOD} null"),
        format!(")]}}',{GOOD}"),
        format!("data: {GOOD}"),
        format!("Content-Length: {}", GOOD.len()),
        GOOD.replace('"', "'"),
        GOOD.replace("1,", "01,"),
        GOOD.replace("1,", "1,,"),
        GOOD.replace(':', "="),
        GOOD[..GOOD.len() - 1].to_owned(),
        GOOD[..GOOD.len() - 2].to_owned(),
        GOOD[1..].to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"ping\"}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":1,"method":"pi\qng"}"#.to_owned(),
    ];
    broken.into_iter().map(str::to_owned).chain(around).collect()
}

fn bytes() -> Vec<(&'static str, Vec<u8>)> {
    let with = |bytes: &[u8]| [b"{\"jsonrpc\":\"2.0\",\"id\":\"", bytes, b"\",\"method\":\"ping\"}"].concat();
    vec![
        ("a lone 0xFF", b"\xff".to_vec()),
        ("0xFF in a string", with(b"\xff")),
        ("an overlong slash", with(b"\xc0\xaf")),
        ("a surrogate in UTF-8", with(b"\xed\xa0\x80")),
        ("a character beyond the last", with(b"\xf4\x90\x80\x80")),
        ("a character cut short", with(b"\xe2\x82")),
        ("a stray continuation", with(b"\x80")),
        ("latin-1", with(b"caf\xe9")),
        ("UTF-16 with its mark", [b"\xff\xfe".to_vec(), utf16()].concat()),
        ("UTF-16 without its mark", utf16()),
        ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03".to_vec()),
        ("zeros", vec![0; 64]),
        ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
    ]
}

fn utf16() -> Vec<u8> {
    GOOD.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Nesting is counted before anything is parsed, so that what closes nothing is judged by its depth.
fn depths() -> Vec<MessageCase> {
    let nested = |open: &str, close: &str, depth: usize| {
        let value = format!("{}{}", open.repeat(depth), close.repeat(depth));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{value}}}}}"#)
    };
    vec![
        MessageCase::new("arrays one too deep", nested("[", "]", 63)).everywhere(NOT_A_MESSAGE),
        MessageCase::new("objects one too deep", nested("{\"a\":", "}", 63).replace(":}", ":0}"))
            .everywhere(NOT_A_MESSAGE),
        MessageCase::new("200,000 arrays", nested("[", "]", 200_000)).everywhere(NOT_A_MESSAGE),
        MessageCase::new("200,000 open arrays", "[".repeat(200_000)).everywhere(NOT_A_MESSAGE),
        MessageCase::new("200,000 open objects", "{\"a\":".repeat(200_000)).everywhere(NOT_A_MESSAGE),
    ]
}
