use trunkline_protocol::RawJson;
use trunkline_protocol::json::JsonKind;

use super::json::one_line;
use crate::terminal::{display_width, escape_line, escape_text, table};

/// How deep values are laid out; what is deeper is written as JSON.
const MAX_DEPTH: usize = 6;

/// The minimum number of rows of a table; fewer are shown as members, one per line.
const MIN_TABLE_ROWS: usize = 2;

/// The maximum number of columns of a readable table.
const MAX_TABLE_COLUMNS: usize = 12;

/// Formats a value as text: one member per line, lists as items, lists of similar flat objects as tables.
///
/// Every line is visible and ends in a line end.
pub(crate) fn format_value(value: &RawJson, columns: usize) -> String {
    let mut text = String::new();
    lay_out(value, 0, columns, &mut text);
    text
}

fn lay_out(value: &RawJson, depth: usize, columns: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match value.kind() {
        JsonKind::Object if depth < MAX_DEPTH => match value.members() {
            Ok(members) if !members.is_empty() => {
                for (name, member) in members.iter() {
                    lay_out_named(&format!("{indent}{}:", escape_line(name)), member, depth, columns, text);
                }
            }
            _ => push_line(text, &indent, &one_line(value)),
        },
        JsonKind::Array if depth < MAX_DEPTH => {
            let elements = value.elements().unwrap_or_default();
            if let Some(rows) = as_table(&elements, columns.saturating_sub(indent.len())) {
                rows.lines().for_each(|row| push_line(text, &indent, row));
            } else if elements.is_empty() {
                push_line(text, &indent, "[]");
            } else {
                elements.iter().for_each(|element| lay_out_item(element, depth, columns, text));
            }
        }
        _ => {
            for line in scalar(value).lines() {
                push_line(text, &indent, line);
            }
        }
    }
}

/// Formats a list item: the first member of an object follows the dash.
fn lay_out_item(value: &RawJson, depth: usize, columns: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    if value.members().is_ok_and(|members| !members.is_empty()) {
        let mut item = String::new();
        lay_out(value, depth + 1, columns, &mut item);
        let item = item.strip_prefix(&*format!("{indent}  ")).unwrap_or(&item);
        text.push_str(&format!("{indent}- {item}"));
    } else {
        lay_out_named(&format!("{indent}-"), value, depth, columns, text);
    }
}

/// Lays out what has a name or a dash before it: on the same line if it is short enough.
fn lay_out_named(head: &str, value: &RawJson, depth: usize, columns: usize, text: &mut String) {
    let nested = match value.kind() {
        JsonKind::Object => value.members().is_ok_and(|members| !members.is_empty()),
        JsonKind::Array => value.elements().is_ok_and(|elements| !elements.is_empty()),
        _ => false,
    };
    if !nested {
        let words = scalar(value);
        if !words.contains('\n') {
            push_line(text, head, &format!(" {words}"));
            return;
        }
    } else if let Some(list) = short_list(value, columns.saturating_sub(display_width(head) + 1)) {
        push_line(text, head, &format!(" {list}"));
        return;
    }
    push_line(text, head, "");
    lay_out(value, depth + 1, columns, text);
}

/// Writes a list of plain values on one line, if it fits.
fn short_list(value: &RawJson, columns: usize) -> Option<String> {
    let elements = value.elements().ok()?;
    let plain =
        elements.iter().all(is_flat) && elements.iter().all(|element| !scalar(element).contains(['\n', ',']));
    let line = elements.iter().map(scalar).collect::<Vec<_>>().join(", ");
    (plain && display_width(&line) <= columns).then_some(line)
}

/// Formats a scalar: text unquoted, everything else as JSON.
fn scalar(value: &RawJson) -> String {
    match value.as_text() {
        Some(text) => escape_text(text.trim_end_matches('\n')).into_owned(),
        None => one_line(value),
    }
}

fn is_flat(value: &RawJson) -> bool {
    !matches!(value.kind(), JsonKind::Object | JsonKind::Array)
}

/// Makes a table of objects that are flat and have the same members, as far as they have them.
fn as_table(elements: &[RawJson], columns: usize) -> Option<String> {
    if elements.len() < MIN_TABLE_ROWS {
        return None;
    }
    let mut head: Vec<String> = Vec::new();
    let mut objects = Vec::with_capacity(elements.len());
    for element in elements {
        let members = element.members().ok().filter(|members| !members.is_empty())?;
        for (name, value) in members.iter() {
            if !is_flat(value) {
                return None;
            }
            if !head.iter().any(|known| *known == **name) {
                head.push(name.to_string());
            }
        }
        objects.push(members);
    }
    if head.len() > MAX_TABLE_COLUMNS {
        return None;
    }
    let rows: Vec<Vec<String>> = objects
        .iter()
        .map(|members| {
            let cell = |name: &String| members.get(name).map(cell).unwrap_or_default();
            head.iter().map(cell).collect()
        })
        .collect();
    let head: Vec<String> = head.iter().map(|name| escape_line(name).into_owned()).collect();
    Some(table(&head, &rows, columns))
}

fn cell(value: &RawJson) -> String {
    match value.as_text() {
        Some(text) => escape_line(&text).into_owned(),
        None if value.is_null() => String::new(),
        None => one_line(value),
    }
}

fn push_line(text: &mut String, start: &str, line: &str) {
    text.push_str(start);
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::terminal::is_unsafe_char;

    #[track_caller]
    fn check(json: &str, expected: &str) {
        assert_eq!(format_value(&RawJson::parse(json.to_owned()).unwrap(), 60), expected, "{json}");
    }

    #[test]
    fn objects_are_members_one_below_the_other() {
        check(
            r#"{"time":"14:30","n":1.50,"ok":true,"none":null,"empty":{},"list":[1,2],"deep":{"a":{"b":"c"}}}"#,
            "time: 14:30\nn: 1.50\nok: true\nnone: null\nempty: {}\nlist: 1, 2\ndeep:\n  a:\n    b: c\n",
        );
        check("7", "7\n");
        check(r#""one\ntwo\n""#, "one\ntwo\n");
        check(r#"{"text":"one\ntwo"}"#, "text:\n  one\n  two\n");
    }

    #[test]
    fn lists_are_items_unless_they_are_tables() {
        check(r#"["a","b"]"#, "- a\n- b\n");
        check(r#"[]"#, "[]\n");
        check(r#"[{"a":1,"b":2}]"#, "- a: 1\n  b: 2\n");
        check(
            r#"[{"name":"ann","age":7},{"age":8,"name":"bob","note":"x"}]"#,
            "name  age  note\nann   7\nbob   8    x\n",
        );
        check(r#"{"rows":[{"a":1},{"a":2}]}"#, "rows:\n  a\n  1\n  2\n");
        check(r#"{"l":[{"a":1},{"a":[1]}]}"#, "l:\n  - a: 1\n  - a: 1\n");
    }

    #[test]
    fn values_beyond_max_depth_are_json() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(10), "}".repeat(10));
        let text = format_value(&RawJson::parse(deep).unwrap(), 60);
        assert_eq!(text.lines().count(), MAX_DEPTH + 1);
        assert!(text.ends_with("     a:\n            {\"a\":{\"a\":{\"a\":{\"a\":1}}}}\n"), "{text}");
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            any::<String>().prop_map(serde_json::Value::from),
            "[\u{0}-\u{9f}\u{200b}-\u{206f}]{0,6}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(8, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
                prop::collection::btree_map("[\u{0}-\u{9f}a-z]{0,5}", inner, 0..5)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn rendered_peer_values_never_contain_control_characters(value in any_json(), columns in 1_usize..100) {
            let text = format_value(&value.into(), columns);
            prop_assert!(!text.chars().any(|c| is_unsafe_char(c) && c != '\n' && c != '\t'), "{text:?}");
        }
    }
}
