//! Where a value in a URI ends.

use std::ops::Range;

use super::parse::{Expression, Operator};
use super::percent::{is_reserved, is_unreserved};

/// How faithful to RFC 6570 a URI is taken to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Values have only characters that an expansion leaves as they are.
    Strict,
    /// Values may have characters that an expansion would have encoded, as long as they end nothing.
    Lenient,
}

/// Returns how many bytes the first character of a canonical text takes.
///
/// A character outside ASCII is several escapes long, and no value may end between them. Where escapes do not
/// spell UTF-8 the length means little, but then no value that holds them can be decoded either.
pub(super) fn character_length(text: &[u8]) -> usize {
    match text {
        [b'%', b'C' | b'D', ..] => 6,
        [b'%', b'E', ..] => 9,
        [b'%', b'F', ..] => 12,
        [b'%', ..] => 3,
        _ => 1,
    }
}

/// The characters that one expression's values may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueClass {
    operator: Operator,
    /// The byte that ends this value because another may follow.
    separator: Option<u8>,
}

impl ValueClass {
    /// Returns the class of a value after which more of the expression's values may follow.
    pub(super) fn inner(expression: &Expression) -> Self {
        let several = expression.names.len() > 1 || expression.operator.is_named();
        let separator = expression.operator.separator().bytes().next().filter(|_| several);
        Self { operator: expression.operator, separator }
    }

    /// Returns the class of the expression's last value, which ends at no separator it could itself have.
    pub(super) fn last(expression: &Expression) -> Self {
        let inner = Self::inner(expression);
        let own = Self { separator: None, ..inner };
        if inner.separator.is_some_and(|byte| own.accepts(byte, Reading::Strict)) { own } else { inner }
    }

    /// Tells whether a value may go on with the first character of a text.
    pub(super) fn accepts_start_of(self, text: &[u8], reading: Reading) -> bool {
        text.first().is_some_and(|byte| self.accepts(*byte, reading))
    }

    fn accepts(self, byte: u8, reading: Reading) -> bool {
        if Some(byte) == self.separator {
            return false;
        }
        if byte == b'%' || is_unreserved(byte) {
            return true;
        }
        match (self.operator, reading) {
            (Operator::Reserved | Operator::Fragment, Reading::Strict) => is_reserved(byte),
            (Operator::Reserved | Operator::Fragment, Reading::Lenient) => true,
            (_, Reading::Strict) => false,
            (Operator::Query | Operator::Continuation, Reading::Lenient) => byte != b'#',
            (_, Reading::Lenient) => !matches!(byte, b'/' | b'?' | b'#'),
        }
    }
}

/// The values of an expression that writes them with their names.
#[derive(Debug, Clone)]
pub(super) struct NamedValues {
    operator: Operator,
    pub(super) class: ValueClass,
    names: Vec<String>,
}

impl NamedValues {
    pub(super) fn new(expression: &Expression) -> Self {
        let class = ValueClass::inner(expression);
        Self { operator: expression.operator, class, names: expression.names.clone() }
    }

    /// Reads as many of the named values as stand at the front of `uri`, in any order, each once.
    ///
    /// Returns each name with its value's place. The last value is taken to be as long as can be.
    pub(super) fn read(&self, uri: &[u8], reading: Reading) -> Vec<(&str, Range<usize>)> {
        // One bit for each name; a template has at most 64.
        let mut taken = 0_u64;
        let mut found: Vec<(&str, Range<usize>)> = Vec::new();
        let mut lead = self.operator.first();
        loop {
            let end = found.last().map_or(0, |(_, value)| value.end);
            let Some(after_lead) = uri.get(end..).and_then(|rest| rest.strip_prefix(lead.as_bytes())) else {
                return found;
            };
            let start = uri.len() - after_lead.len();
            let next = self.names.iter().enumerate().find_map(|(bit, name)| {
                let free = taken & (1 << bit) == 0;
                let value = free.then(|| self.value_after(name, after_lead, reading)).flatten()?;
                Some((bit, name, value))
            });
            let Some((bit, name, value)) = next else { return found };
            taken |= 1 << bit;
            found.push((name, start + value.start..start + value.end));
            lead = self.operator.separator();
        }
    }

    /// Finds the value if `text` begins with the variable's name.
    fn value_after(&self, name: &str, text: &[u8], reading: Reading) -> Option<Range<usize>> {
        let rest = text.strip_prefix(name.as_bytes())?;
        let Some(value) = rest.strip_prefix(b"=") else {
            // `;name` alone is an empty value, but `;names` is another name.
            let name_ends = !self.class.accepts_start_of(rest, reading);
            let empty = self.operator == Operator::Parameters && name_ends;
            return empty.then_some(name.len()..name.len());
        };
        let start = name.len() + 1;
        let mut length = 0;
        while let Some(rest) = value.get(length..)
            && self.class.accepts_start_of(rest, reading)
        {
            length += character_length(rest);
        }
        Some(start..start + length.min(value.len()))
    }
}
