use serde_json::{Value, json};

/// The most differences that are listed of one call.
const MAX_DIFFERENCES: usize = 20;

/// The most characters of a value that are shown.
const MAX_SHOWN: usize = 160;

/// A difference between two values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueDifference {
    /// Where it is, such as `content.0.text`; empty for the whole value.
    pub(crate) path: String,
    /// What is there on the first side; `None` if nothing is.
    pub(crate) before: Option<Value>,
    /// What is there on the second side.
    pub(crate) after: Option<Value>,
}

impl ValueDifference {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "path": self.path, "before": self.before, "after": self.after })
    }

    /// Describes it on one line, not yet escaped.
    pub(crate) fn describe(&self) -> String {
        let path = if self.path.is_empty() { "(all)" } else { &self.path };
        let show = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), shown);
        format!("{path}: {} -> {}", show(&self.before), show(&self.after))
    }
}

/// Lists the differences between two values, the first of them.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<ValueDifference> {
    let mut found = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<ValueDifference>) {
    if before == after || found.len() >= MAX_DIFFERENCES {
        return;
    }
    let inside = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (before, after) {
        (Some(Value::Object(first)), Some(Value::Object(second))) => {
            let added = second.keys().filter(|key| !first.contains_key(*key));
            for key in first.keys().chain(added) {
                compare(inside(key), first.get(key), second.get(key), found);
            }
        }
        (Some(Value::Array(first)), Some(Value::Array(second))) => {
            for at in 0..first.len().max(second.len()) {
                compare(inside(&label(at, first, second)), first.get(at), second.get(at), found);
            }
        }
        _ => found.push(ValueDifference { path, before: before.cloned(), after: after.cloned() }),
    }
}

/// Names an element by its position, and by its name if it has one, such as a tool in a list.
fn label(at: usize, first: &[Value], second: &[Value]) -> String {
    let name = |items: &[Value]| Some(items.get(at)?.get("name")?.as_str()?.to_owned());
    match name(first).or_else(|| name(second)) {
        Some(name) => format!("{at}[{name}]"),
        None => at.to_string(),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.chars().count() {
        0..=MAX_SHOWN => text,
        _ => format!("{}…", text.chars().take(MAX_SHOWN).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_the_path_and_both_values() {
        let before = json!({ "tools": [{ "name": "a", "description": "x" }], "same": 1, "gone": true });
        let after = json!({ "tools": [{ "name": "a", "description": "y" }, { "name": "b" }], "same": 1 });
        let lines: Vec<_> = differences(&before, &after).iter().map(ValueDifference::describe).collect();
        assert_eq!(
            lines,
            [
                "gone: true -> nothing",
                r#"tools.0[a].description: "x" -> "y""#,
                r#"tools.1[b]: nothing -> {"name":"b"}"#,
            ]
        );
        let many = |value: i32| json!((0..100).map(|_| value).collect::<Vec<_>>());
        assert_eq!(differences(&many(1), &many(2)).len(), MAX_DIFFERENCES);
    }
}
