use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::{Range as SourceRange, Ranged as _};
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::SyntaxError;
use crate::node::{ConfigNode, NodeKind, TableEntry};

/// The extensions of JSON that editors allow: comments and trailing commas. The parser's other extensions are
/// rejected, since the client that owns the file would not read them.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads JSON with comments. The parser itself limits how deep values nest.
pub(super) fn parse(text: &str) -> Result<ConfigNode, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS).map_err(|error| {
        let range = error.range();
        let message = match error.kind() {
            ParseErrorKind::UnterminatedObject => "the object that begins here has no closing `}`".to_owned(),
            ParseErrorKind::UnterminatedArray => "the list that begins here has no closing `]`".to_owned(),
            other => other.to_string(),
        };
        SyntaxError { span: range.start..range.end, message }
    })?;
    match parsed.value {
        Some(value) => node(value),
        // A client may create an empty file before it has any settings.
        None => Ok(ConfigNode { span: text.len()..text.len(), kind: NodeKind::Table(Vec::new()) }),
    }
}

fn node(value: Value<'_>) -> Result<ConfigNode, SyntaxError> {
    let span = span(&value.range());
    let kind = match value {
        Value::NullKeyword(_) => NodeKind::Null,
        Value::BooleanLit(literal) => NodeKind::Bool(literal.value),
        Value::NumberLit(literal) => number(literal.value),
        Value::StringLit(literal) => NodeKind::Text(literal.value.into_owned()),
        Value::Array(array) => {
            NodeKind::Array(array.elements.into_iter().map(node).collect::<Result<_, _>>()?)
        }
        Value::Object(object) => NodeKind::Table(members(object)?),
    };
    Ok(ConfigNode { span, kind })
}

fn number(text: &str) -> NodeKind {
    text.parse().map_or_else(|_| NodeKind::Float(text.parse().unwrap_or(f64::NAN)), NodeKind::Integer)
}

/// Reads the members of an object; of two that are equal some programs take the first and others the last.
fn members(object: Object<'_>) -> Result<Vec<TableEntry>, SyntaxError> {
    let mut seen = std::collections::HashSet::with_capacity(object.properties.len());
    let mut entries = Vec::with_capacity(object.properties.len());
    for property in object.properties {
        let key_span = span(&property.name.range());
        let key = property.name.into_string();
        if !seen.insert(key.clone()) {
            let message = format!("`{key}` is set twice in the same object");
            return Err(SyntaxError { span: key_span, message });
        }
        entries.push(TableEntry { key, key_span, value: node(property.value)? });
    }
    Ok(entries)
}

fn span(range: &SourceRange) -> std::ops::Range<usize> {
    range.start..range.end
}
