use std::ops::Range;

use toml_edit::{Array, Document, Item, Key, Value};

use super::SyntaxError;
use crate::node::{Entry, Kind, Node};

/// Reads TOML. The parser itself refuses equal keys and limits how deep tables nest.
pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    let document = Document::parse(text).map_err(|error| SyntaxError {
        span: error.span().unwrap_or(0..0),
        // The parser may say more on further lines, of what it expected; the first says what is wrong.
        message: error.message().lines().next().unwrap_or("is not TOML").to_owned(),
    })?;
    let table = document.as_table();
    let entries = table.iter().filter_map(|(name, item)| entry(table.key(name), name, item)).collect();
    Ok(Node { span: 0..text.len(), kind: Kind::Table(entries) })
}

fn entry(key: Option<&Key>, name: &str, item: &Item) -> Option<Entry> {
    let key_span = key.and_then(Key::span).unwrap_or(0..0);
    let value = item_node(item, &key_span)?;
    Some(Entry { key: name.to_owned(), key_span, value })
}

fn item_node(item: &Item, place: &Range<usize>) -> Option<Node> {
    let kind = match item {
        Item::None => return None,
        Item::Value(value) => return Some(value_node(value, place)),
        Item::Table(table) => {
            Kind::Table(table.iter().filter_map(|(name, item)| entry(table.key(name), name, item)).collect())
        }
        Item::ArrayOfTables(tables) => {
            let tables = tables.iter().map(|table| {
                let entries = table.iter().filter_map(|(name, item)| entry(table.key(name), name, item));
                Node {
                    span: table.span().unwrap_or_else(|| place.clone()),
                    kind: Kind::Table(entries.collect()),
                }
            });
            Kind::Array(tables.collect())
        }
    };
    Some(Node { span: item.span().unwrap_or_else(|| place.clone()), kind })
}

fn value_node(value: &Value, place: &Range<usize>) -> Node {
    let kind = match value {
        Value::String(text) => Kind::Text(text.value().clone()),
        Value::Integer(number) => Kind::Integer(*number.value()),
        Value::Float(number) => Kind::Float(*number.value()),
        Value::Boolean(yes) => Kind::Bool(*yes.value()),
        Value::Datetime(time) => Kind::Text(time.value().to_string()),
        Value::Array(array) => Kind::Array(elements(array, place)),
        Value::InlineTable(table) => {
            let entries = table.iter().map(|(name, value)| {
                let key_span = table.key(name).and_then(Key::span).unwrap_or_else(|| place.clone());
                let value = value_node(value, &key_span);
                Entry { key: name.to_owned(), key_span, value }
            });
            Kind::Table(entries.collect())
        }
    };
    Node { span: value.span().unwrap_or_else(|| place.clone()), kind }
}

fn elements(array: &Array, place: &Range<usize>) -> Vec<Node> {
    array.iter().map(|element| value_node(element, place)).collect()
}
