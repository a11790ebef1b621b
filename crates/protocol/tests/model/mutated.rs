//! JSON with something changed in it.

use proptest::prelude::*;
use serde_json::{Value, json};
use trunkline_protocol::RawJson;

/// A change of one value within another.
#[derive(Clone, Debug)]
pub(super) struct Mutation {
    /// Which value, counted from the outside.
    at: usize,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    Replace(Value),
    Remove,
    Wrap,
    AsKey(String),
}

pub(super) fn mutation() -> impl Strategy<Value = Mutation> {
    let change = prop_oneof![
        6 => value().prop_map(Change::Replace),
        2 => Just(Change::Remove),
        1 => Just(Change::Wrap),
        1 => "[a-z$_]{0,4}".prop_map(Change::AsKey),
    ];
    (0..64_usize, change).prop_map(|(at, change)| Mutation { at, change })
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        Just(json!(0)),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!(1e300)),
        Just(json!("")),
        Just(json!("object")),
        Just(json!("yesterday")),
        Just(json!("user")),
        Just(json!("text")),
        Just(json!("\u{0}\u{1F600}")),
        Just(json!([])),
        Just(json!({})),
        Just(json!([null])),
        Just(json!(["a", "b"])),
        Just(json!({ "type": "text", "text": "t" })),
        Just(json!({ "type": "object", "properties": { "a": true } })),
        Just(json!({ "$ref": "#" })),
    ]
}

/// Changes a value; duplicate members are what only a text can have.
pub(super) fn apply(value: &Value, mutations: &[Mutation]) -> RawJson {
    let mut changed = value.clone();
    for mutation in mutations {
        let count = count(&changed);
        change(&mut changed, &mut (mutation.at % count), &mutation.change);
    }
    RawJson::from(&changed)
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(count).sum(),
        Value::Array(elements) => elements.iter().map(count).sum(),
        _ => 0,
    }
}

/// Changes the value that is so many steps ahead; reports whether that was reached.
fn change(value: &mut Value, ahead: &mut usize, how: &Change) -> bool {
    if *ahead == 0 {
        *value = match how {
            Change::Replace(other) => other.clone(),
            Change::Remove => Value::Null,
            Change::Wrap => json!([value.take()]),
            Change::AsKey(key) => json!({ key: value.take() }),
        };
        return true;
    }
    *ahead -= 1;
    match value {
        Value::Object(members) => {
            for key in members.keys().cloned().collect::<Vec<_>>() {
                if *ahead == 0 && matches!(how, Change::Remove) {
                    members.remove(&key);
                    return true;
                }
                if members.get_mut(&key).is_some_and(|member| change(member, ahead, how)) {
                    return true;
                }
            }
            false
        }
        Value::Array(elements) => elements.iter_mut().any(|element| change(element, ahead, how)),
        _ => false,
    }
}
