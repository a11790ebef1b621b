//! Writing an expression's values.

use std::borrow::Cow;

use super::parse::{TemplateExpression, TemplateOperator};
use super::percent::{encode_into, is_escape, is_reserved, is_unreserved};

/// Appends one expression with the values that `value_of` gives.
pub(super) fn expand<'v>(
    uri: &mut String,
    expression: &TemplateExpression,
    value_of: &mut impl FnMut(&str) -> Option<Cow<'v, str>>,
) {
    let operator = expression.operator;
    let mut lead = operator.first();
    for name in &expression.names {
        let Some(value) = value_of(name) else { continue };
        uri.push_str(lead);
        lead = operator.separator();
        if operator.is_named() {
            uri.push_str(name);
            // Path-style parameters drop the `=` of an empty value; queries keep it.
            if !value.is_empty() || operator != TemplateOperator::Parameters {
                uri.push('=');
            }
        }
        if operator.keeps_reserved() {
            push_keeping_reserved(uri, &value);
        } else {
            push_encoded(uri, &value);
        }
    }
}

fn push_encoded(uri: &mut String, value: &str) {
    for byte in value.bytes() {
        if is_unreserved(byte) {
            uri.push(char::from(byte));
        } else {
            encode_into(uri, &[byte]);
        }
    }
}

fn push_keeping_reserved(uri: &mut String, value: &str) {
    for (at, byte) in value.bytes().enumerate() {
        let escape = byte == b'%' && value.get(at..).is_some_and(is_escape);
        if escape || is_unreserved(byte) || is_reserved(byte) {
            uri.push(char::from(byte));
        } else {
            encode_into(uri, &[byte]);
        }
    }
}
