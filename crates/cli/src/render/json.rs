use std::fmt::Write as _;

use trunkline_protocol::Raw;

use crate::terminal::steers;

/// Writes a value on one line, every digit and the order of members kept, with nothing in it that steers a terminal.
///
/// It is the same value: what is written differently is space between tokens, and characters of strings as escapes.
pub(crate) fn one_line(value: &Raw) -> String {
    let text = value.as_str();
    let mut line = String::with_capacity(text.len());
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        match (in_string, c) {
            (false, ' ' | '\t' | '\r' | '\n') => {}
            (_, c) if steers(c) => push_escape(&mut line, c),
            (_, c) => line.push(c),
        }
        if c == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && c == '\\' && !escaped;
    }
    line
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
        one_line(&Raw::parse(json.to_owned()).unwrap())
    }

    #[test]
    fn a_value_is_one_line_with_every_digit() {
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

    proptest! {
        #[test]
        fn a_line_is_the_same_value_and_steers_no_terminal(text in any::<String>(), key in any::<String>(), hazards in "[\u{7f}-\u{9f}\u{2028}-\u{202e}\u{feff}]{0,8}") {
            let value = serde_json::json!({ key: [format!("{text}{hazards}"), { "n": 1 }] });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            let line = line(&pretty);
            prop_assert!(!line.chars().any(steers), "{line:?}");
            prop_assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), value);
        }
    }
}
