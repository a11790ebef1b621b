//! Where a value in a URI ends.

use std::ops::Range;

use super::parse::{TemplateExpression, TemplateOperator};
use super::percent::{is_reserved, is_unreserved};

/// How faithful to RFC 6570 a URI is taken to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchMode {
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
    operator: TemplateOperator,
    /// The byte that ends this value because another may follow.
    separator: Option<u8>,
}

impl ValueClass {
    /// Returns the class of a value after which more of the expression's values may follow.
    pub(super) fn inner(expression: &TemplateExpression) -> Self {
        let several = expression.names.len() > 1 || expression.operator.is_named();
        let separator = expression.operator.separator().bytes().next().filter(|_| several);
        Self { operator: expression.operator, separator }
    }

    /// Returns the class of the expression's last value, which ends at no separator it could itself have.
    pub(super) fn last(expression: &TemplateExpression) -> Self {
        let inner = Self::inner(expression);
        let own = Self { separator: None, ..inner };
        if inner.separator.is_some_and(|byte| own.accepts(byte, MatchMode::Strict)) { own } else { inner }
    }

    /// Reports whether a value may continue with the first character of a text.
    pub(super) fn accepts_first_char(self, text: &[u8], reading: MatchMode) -> bool {
        text.first().is_some_and(|byte| self.accepts(*byte, reading))
    }

    fn accepts(self, byte: u8, reading: MatchMode) -> bool {
        #[cfg(test)]
        examined::count();
        if Some(byte) == self.separator {
            return false;
        }
        if byte == b'%' || is_unreserved(byte) {
            return true;
        }
        match (self.operator, reading) {
            (TemplateOperator::Reserved | TemplateOperator::Fragment, MatchMode::Strict) => is_reserved(byte),
            (TemplateOperator::Reserved | TemplateOperator::Fragment, MatchMode::Lenient) => true,
            (_, MatchMode::Strict) => false,
            (TemplateOperator::Query | TemplateOperator::Continuation, MatchMode::Lenient) => byte != b'#',
            (_, MatchMode::Lenient) => !matches!(byte, b'/' | b'?' | b'#'),
        }
    }
}

/// The values of an expression that writes them with their names.
#[derive(Debug, Clone)]
pub(super) struct NamedValues {
    operator: TemplateOperator,
    pub(super) class: ValueClass,
    names: Vec<String>,
}

impl NamedValues {
    pub(super) fn new(expression: &TemplateExpression) -> Self {
        let class = ValueClass::inner(expression);
        Self { operator: expression.operator, class, names: expression.names.clone() }
    }

    /// Reads as many named values as follow at an offset of the URI, in any order, each once.
    ///
    /// Returns each name with its value's range. The last value is as long as possible.
    pub(super) fn read(&self, uri: &[u8], offset: usize, runs: &ValueRuns) -> Vec<(&str, Range<usize>)> {
        // One bit for each name; a template has at most 64.
        let mut taken = 0_u64;
        let mut found: Vec<(&str, Range<usize>)> = Vec::new();
        let mut lead = self.operator.first();
        loop {
            let end = found.last().map_or(offset, |(_, value)| value.end);
            let Some(after_lead) = uri.get(end..).and_then(|rest| rest.strip_prefix(lead.as_bytes())) else {
                return found;
            };
            let next = self.names.iter().enumerate().find_map(|(bit, name)| {
                let free = taken & (1 << bit) == 0;
                let value = free.then(|| self.value_after(name, after_lead, uri.len(), runs)).flatten()?;
                Some((bit, name, value))
            });
            let Some((bit, name, value)) = next else { return found };
            taken |= 1 << bit;
            found.push((name, value));
            lead = self.operator.separator();
        }
    }

    /// Finds the value if `text`, which is the end of a URI of so many bytes, begins with the variable's name.
    fn value_after(
        &self,
        name: &str,
        text: &[u8],
        uri_length: usize,
        runs: &ValueRuns,
    ) -> Option<Range<usize>> {
        #[cfg(test)]
        examined::count();
        let rest = text.strip_prefix(name.as_bytes())?;
        let Some(value) = rest.strip_prefix(b"=") else {
            // `;name` alone is an empty value, but `;names` is another name.
            let start = uri_length - rest.len();
            let empty = self.operator == TemplateOperator::Parameters && runs.end(start) == start;
            return empty.then_some(start..start);
        };
        let start = uri_length - value.len();
        Some(start..runs.end(start))
    }
}

/// The end of the longest value of one class from every offset of a URI, computed in one pass from its end.
///
/// Scanning from every offset would be quadratic for a URI in which most offsets begin a value.
#[derive(Debug)]
pub(super) struct ValueRuns {
    /// For each offset, the end of the longest value that begins there.
    ends: Vec<usize>,
}

impl ValueRuns {
    pub(super) fn new(class: ValueClass, uri: &[u8], reading: MatchMode) -> Self {
        let mut ends: Vec<usize> = (0..=uri.len()).collect();
        for offset in (0..uri.len()).rev() {
            let rest = uri.get(offset..).unwrap_or_default();
            if class.accepts_first_char(rest, reading) {
                // A truncated escape ends with the URI.
                let after = (offset + character_length(rest)).min(uri.len());
                let end = ends.get(after).copied().unwrap_or(after);
                if let Some(slot) = ends.get_mut(offset) {
                    *slot = end;
                }
            }
        }
        Self { ends }
    }

    fn end(&self, offset: usize) -> usize {
        self.ends.get(offset).copied().unwrap_or(offset)
    }
}

/// Counts how often a byte of a URI is examined.
#[cfg(test)]
pub(super) mod examined {
    use std::cell::Cell;

    thread_local!(static EXAMINED: Cell<usize> = const { Cell::new(0) });

    pub(super) fn count() {
        EXAMINED.set(EXAMINED.get() + 1);
    }

    /// Returns the count since the last time.
    pub(in super::super) fn take() -> usize {
        EXAMINED.take()
    }
}
