use std::ops::Range;

use toml_edit::{Array, Document, Item, Key, Value};

use super::SyntaxError;
use crate::node::{ConfigNode, NodeKind, TableEntry};

/// Reads TOML. The parser itself refuses equal keys and limits how deep tables nest.
pub(super) fn parse(text: &str) -> Result<ConfigNode, SyntaxError> {
    let document = Document::parse(text).map_err(|error| SyntaxError {
        span: error.span().unwrap_or(0..0),
        // The first line has the error; further lines only list what the parser expected.
        message: error.message().lines().next().unwrap_or("is not TOML").to_owned(),
    })?;
    let table = document.as_table();
    let entries = table.iter().filter_map(|(name, item)| entry(table.key(name), name, item)).collect();
    Ok(ConfigNode { span: 0..text.len(), kind: NodeKind::Table(entries) })
}

fn entry(key: Option<&Key>, name: &str, item: &Item) -> Option<TableEntry> {
    let key_span = key.and_then(Key::span).unwrap_or(0..0);
    let value = item_node(item, &key_span)?;
    Some(TableEntry { key: name.to_owned(), key_span, value })
}

fn item_node(item: &Item, outer: &Range<usize>) -> Option<ConfigNode> {
    let kind = match item {
        Item::None => return None,
        Item::Value(value) => return Some(value_node(value, outer)),
        Item::Table(table) => NodeKind::Table(
            table.iter().filter_map(|(name, item)| entry(table.key(name), name, item)).collect(),
        ),
        Item::ArrayOfTables(tables) => {
            let tables = tables.iter().map(|table| {
                let entries = table.iter().filter_map(|(name, item)| entry(table.key(name), name, item));
                ConfigNode {
                    span: table.span().unwrap_or_else(|| outer.clone()),
                    kind: NodeKind::Table(entries.collect()),
                }
            });
            NodeKind::Array(tables.collect())
        }
    };
    Some(ConfigNode { span: item.span().unwrap_or_else(|| outer.clone()), kind })
}

fn value_node(value: &Value, outer: &Range<usize>) -> ConfigNode {
    let kind = match value {
        Value::String(text) => NodeKind::Text(text.value().clone()),
        Value::Integer(number) => NodeKind::Integer(*number.value()),
        Value::Float(number) => NodeKind::Float(*number.value()),
        Value::Boolean(yes) => NodeKind::Bool(*yes.value()),
        Value::Datetime(time) => NodeKind::Text(time.value().to_string()),
        Value::Array(array) => NodeKind::Array(elements(array, outer)),
        Value::InlineTable(table) => {
            let entries = table.iter().map(|(name, value)| {
                let key_span = table.key(name).and_then(Key::span).unwrap_or_else(|| outer.clone());
                let value = value_node(value, &key_span);
                TableEntry { key: name.to_owned(), key_span, value }
            });
            NodeKind::Table(entries.collect())
        }
    };
    ConfigNode { span: value.span().unwrap_or_else(|| outer.clone()), kind }
}

fn elements(array: &Array, outer: &Range<usize>) -> Vec<ConfigNode> {
    array.iter().map(|element| value_node(element, outer)).collect()
}
