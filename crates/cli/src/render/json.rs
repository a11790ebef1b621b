use std::fmt::Write as _;

use trunkline_protocol::RawJson;

use crate::terminal::is_unsafe_char;

/// Writes a value on one line, every digit and the order of members kept, with nothing in it that steers a terminal.
///
/// The value is unchanged: only whitespace between tokens and the escapes in strings differ.
pub(crate) fn one_line(value: &RawJson) -> String {
    let text = value.as_str();
    let mut line = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        match (in_string, c) {
            (false, ' ' | '\t' | '\r' | '\n') => {}
            (_, c) if is_unsafe_char(c) => push_escape(&mut line, c),
            (_, c) => line.push(c),
        }
        if c == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && c == '\\' && !escaped;
    }
    line
}

/// Writes values as one array on one line.
pub(crate) fn array<'v>(values: impl Iterator<Item = &'v RawJson>) -> String {
    format!("[{}]", values.map(one_line).collect::<Vec<_>>().join(","))
}

/// Writes a value over several lines, every digit and the order of members kept.
pub(crate) fn pretty(value: &RawJson) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    let (mut in_string, mut escaped) = (false, false);
    let line = one_line(value);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if in_string {
            in_string = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            text.push(c);
            continue;
        }
        match c {
            '{' | '[' if matches!(rest.peek(), Some('}' | ']')) => text.push(c),
            '{' | '[' => {
                depth += 1;
                text.push(c);
                break_line(&mut text, depth);
            }
            '}' | ']' if text.ends_with(['{', '[']) => text.push(c),
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut text, depth);
                text.push(c);
            }
            ',' => {
                text.push(c);
                break_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            c => {
                in_string = c == '"';
                text.push(c);
            }
        }
    }
    text
}

fn break_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

fn push_escape(line: &mut String, c: char) {
    let mut units = [0; 2];
    for unit in c.encode_utf16(&mut units) {
        // Writing to a string cannot fail.
        let _ = write!(line, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn line(json: &str) -> String {
        one_line(&RawJson::parse(json.to_owned()).unwrap())
    }

    #[test]
    fn json_output_is_one_line_with_every_digit() {
        for (json, expected) in [
            ("{\n  \"b\" : 1.50,\r\n\t\"a\": [ 1 , 2 ]\n}", r#"{"b":1.50,"a":[1,2]}"#),
            (r#"" a \" b ""#, r#"" a \" b ""#),
            (r#"{"a\\" : "b \\" }"#, r#"{"a\\":"b \\"}"#),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
            ("\"\u{202e}\u{9b}\u{e0041}\"", r#""\u202e\u009b\udb40\udc41""#),
        ] {
            assert_eq!(line(json), expected, "{json:?}");
        }
    }

    #[test]
    fn pretty_json_uses_the_conventional_layout() {
        for json in ["7", "\"a\\\\\"", "{}", "[]", r#"{"a":[],"b":{"c":[1,"x:{,}\"y",{}]},"d":null}"#] {
            let value: Value = serde_json::from_str(json).unwrap();
            let expected = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(pretty(&RawJson::parse(json).unwrap()), expected, "{json}");
        }
        assert_eq!(array([RawJson::NULL, RawJson::TRUE].iter()), "[null,true]");
    }

    proptest! {
        #[test]
        fn json_line_round_trips_without_control_characters(text in any::<String>(), key in any::<String>(), hazards in "[\u{7f}-\u{9f}\u{2028}-\u{202e}\u{feff}]{0,8}") {
            let value = serde_json::json!({ key: [format!("{text}{hazards}"), { "n": 1 }] });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let line = line(&pretty);
            prop_assert!(!line.chars().any(is_unsafe_char), "{line:?}");
            prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }
}
