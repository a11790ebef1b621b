//! Reading the variables back out of a URI.
//!
//! A template is compiled into steps. For every step, from the last to the first, one row of flags holds the
//! offsets of the URI at which the steps from there on can succeed; a row follows from the later ones in a single
//! pass. A walk from the front then only takes branches that are known to match, so there is no backtracking,
//! however ambiguous the template is.
//!
//! # Invariants
//!
//! - Matching takes time linear in the length of the URI, however repetitive it is:
//!   `template_matching_time_is_linear_in_the_uri_length`.

use super::MAX_LENGTH;
use super::parse::{TemplateExpression, TemplatePart};
use super::percent::{canonical, decode};
use super::value::{MatchMode, NamedValues, ValueClass, ValueRuns, character_length};

/// One instruction of a compiled template.
#[derive(Debug, Clone)]
pub(super) enum MatchStep {
    /// The URI continues with these bytes.
    Literal(Vec<u8>),
    /// The steps up to the given one are skipped if they cannot succeed.
    Optional { end: usize },
    /// The URI continues with a variable's value.
    Capture { name: String, class: ValueClass, may_be_empty: bool },
    /// The URI continues with any of some named values, or none.
    Named(NamedValues),
}

pub(super) fn compile(parts: &[TemplatePart]) -> Vec<MatchStep> {
    let mut steps = Vec::new();
    for part in parts {
        match part {
            TemplatePart::Literal(text) => steps.push(literal(text)),
            TemplatePart::Expression(expression) if expression.operator.is_named() => {
                steps.push(MatchStep::Named(NamedValues::new(expression)));
            }
            TemplatePart::Expression(expression) => compile_list(&mut steps, expression),
        }
    }
    steps
}

/// Compiles an expression that lists values without names; trailing ones may be missing.
fn compile_list(steps: &mut Vec<MatchStep>, expression: &TemplateExpression) {
    let operator = expression.operator;
    let mut lead = operator.first();
    let mut optional_steps = Vec::new();
    for (position, name) in expression.names.iter().enumerate() {
        if !lead.is_empty() {
            optional_steps.push(steps.len());
            steps.push(MatchStep::Optional { end: 0 });
            steps.push(literal(lead));
        }
        // Without a prefix, an empty value could not be distinguished from a missing one.
        let may_be_empty = !lead.is_empty();
        let is_last = position + 1 == expression.names.len();
        let class = if is_last { ValueClass::last(expression) } else { ValueClass::inner(expression) };
        steps.push(MatchStep::Capture { name: name.clone(), class, may_be_empty });
        lead = operator.separator();
    }
    let after = steps.len();
    for index in optional_steps {
        if let Some(MatchStep::Optional { end }) = steps.get_mut(index) {
            *end = after;
        }
    }
}

fn literal(text: &str) -> MatchStep {
    // A parsed literal always has a canonical form, since the parser refused broken escapes.
    MatchStep::Literal(canonical(text).unwrap_or_default().into_owned().into_bytes())
}

pub(super) fn match_uri<'t>(steps: &'t [MatchStep], uri: &str) -> Option<Vec<(&'t str, String)>> {
    if uri.len() > MAX_LENGTH {
        return None;
    }
    let uri = canonical(uri)?;
    let uri = uri.as_bytes();
    // Most URIs that do not match differ in their first bytes; these cost no rows.
    if let Some(MatchStep::Literal(text)) = steps.first()
        && !uri.starts_with(text)
    {
        return None;
    }
    if uri.len() > MAX_LENGTH {
        return None;
    }
    let read = |reading| TemplateMatcher::new(steps, uri, reading).walk();
    read(MatchMode::Strict).or_else(|| read(MatchMode::Lenient))
}

struct TemplateMatcher<'t, 'u> {
    steps: &'t [MatchStep],
    uri: &'u [u8],
    mode: MatchMode,
    /// For each step, and once more for the end, the offsets from which the rest succeeds; row after row.
    succeeds: Vec<bool>,
}

impl<'t, 'u> TemplateMatcher<'t, 'u> {
    fn new(steps: &'t [MatchStep], uri: &'u [u8], reading: MatchMode) -> Self {
        let succeeds = vec![false; (steps.len() + 1) * (uri.len() + 1)];
        let mut matcher = Self { steps, uri, mode: reading, succeeds };
        matcher.set(steps.len(), uri.len());
        for (index, step) in steps.iter().enumerate().rev() {
            matcher.fill_row(index, step);
        }
        matcher
    }

    fn fill_row(&mut self, index: usize, step: &MatchStep) {
        if let MatchStep::Named(values) = step {
            return self.fill_named(index, values);
        }
        for offset in (0..=self.uri.len()).rev() {
            let succeeds = match step {
                MatchStep::Literal(text) => {
                    self.get(index + 1, offset + text.len()) && self.rest(offset).starts_with(text)
                }
                MatchStep::Optional { end } => self.get(index + 1, offset) || self.get(*end, offset),
                MatchStep::Capture { class, may_be_empty, .. } => {
                    let rest = self.rest(offset);
                    let after = offset + character_length(rest);
                    let longer = class.accepts_first_char(rest, self.mode)
                        && (self.get(index + 1, after) || self.get(index, after));
                    longer || (*may_be_empty && self.get(index + 1, offset))
                }
                MatchStep::Named(_) => false,
            };
            if succeeds {
                self.set(index, offset);
            }
        }
    }

    fn fill_named(&mut self, index: usize, values: &NamedValues) {
        let runs = ValueRuns::new(values.class, self.uri, self.mode);
        let ends_well = self.value_can_end(index + 1, values.class);
        for offset in 0..=self.uri.len() {
            let succeeds = match values.read(self.uri, offset, &runs).last() {
                None => self.get(index + 1, offset),
                Some((_, last)) => ends_well.get(last.start).copied().unwrap_or(false),
            };
            if succeeds {
                self.set(index, offset);
            }
        }
    }

    /// Returns for each offset whether a value that begins there, and may be empty, can end where the rest succeeds.
    fn value_can_end(&self, next: usize, class: ValueClass) -> Vec<bool> {
        let mut ends_well = vec![false; self.uri.len() + 1];
        for offset in (0..=self.uri.len()).rev() {
            let rest = self.rest(offset);
            let longer = class.accepts_first_char(rest, self.mode)
                && ends_well.get(offset + character_length(rest)).copied().unwrap_or(false);
            if let Some(flag) = ends_well.get_mut(offset) {
                *flag = longer || self.get(next, offset);
            }
        }
        ends_well
    }

    /// Collects the values along the first path that is known to succeed, if there is one.
    fn walk(&self) -> Option<Vec<(&'t str, String)>> {
        if !self.get(0, 0) {
            return None;
        }
        let mut values = Vec::new();
        let mut index = 0;
        let mut offset = 0;
        while let Some(step) = self.steps.get(index) {
            let mut next = index + 1;
            match step {
                MatchStep::Literal(text) => offset += text.len(),
                MatchStep::Optional { end } if !self.get(next, offset) => next = *end,
                MatchStep::Optional { .. } => {}
                MatchStep::Capture { name, class, may_be_empty } => {
                    let end = self.longest_value(next, offset, *class, *may_be_empty)?;
                    record(&mut values, name, self.uri.get(offset..end)?)?;
                    offset = end;
                }
                MatchStep::Named(named) => {
                    let runs = ValueRuns::new(named.class, self.uri, self.mode);
                    let mut found = named.read(self.uri, offset, &runs);
                    if let Some((_, last)) = found.last_mut() {
                        offset = self.longest_value(next, last.start, named.class, true)?;
                        last.end = offset;
                    }
                    for (name, value) in found {
                        record(&mut values, name, self.uri.get(value)?)?;
                    }
                }
            }
            index = next;
        }
        Some(values)
    }

    /// Finds the last offset where a value that begins at `start` may end.
    fn longest_value(
        &self,
        next: usize,
        start: usize,
        class: ValueClass,
        may_be_empty: bool,
    ) -> Option<usize> {
        let mut longest = (may_be_empty && self.get(next, start)).then_some(start);
        let mut offset = start;
        while class.accepts_first_char(self.rest(offset), self.mode) {
            offset += character_length(self.rest(offset));
            if self.get(next, offset) {
                longest = Some(offset);
            }
        }
        longest
    }

    fn rest(&self, offset: usize) -> &'u [u8] {
        self.uri.get(offset..).unwrap_or_default()
    }

    fn get(&self, step: usize, offset: usize) -> bool {
        let inside = offset <= self.uri.len();
        inside && self.succeeds.get(step * (self.uri.len() + 1) + offset).copied().unwrap_or(false)
    }

    fn set(&mut self, step: usize, offset: usize) {
        if let Some(flag) = self.succeeds.get_mut(step * (self.uri.len() + 1) + offset) {
            *flag = true;
        }
    }
}

/// Adds a decoded value, unless the variable already has another one.
fn record<'t>(values: &mut Vec<(&'t str, String)>, name: &'t str, encoded: &[u8]) -> Option<()> {
    let value = decode(encoded)?;
    match values.iter().find(|(known, _)| *known == name) {
        Some((_, known)) => (*known == value).then_some(()),
        None => {
            values.push((name, value));
            Some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::UriTemplate;
    use super::super::value::examined;

    #[test]
    fn template_matching_time_is_linear_in_the_uri_length() {
        for template in
            ["x:{?a}", "x:{?a,b,c}", "x:{&a}{&b}", "x:{;a}{?b}{&c}", "x:{a}{+b}{/c}", "{+a}{?b}{&c}{#d}"]
        {
            let template = UriTemplate::parse(template).unwrap();
            for piece in
                ["?a=", "&a=", ";a=", "?a=&b=", "&a=1&b=", ";a;a", "?", "/", "a", "%C3%A9", "?a=%", "#"]
            {
                let looks_at = |bytes: usize| {
                    let uri = format!("x:{}!", piece.repeat(bytes / piece.len()));
                    examined::take();
                    // Whether it matches is another matter.
                    let _ = template.match_uri(&uri);
                    examined::take()
                };
                let (short, long) = (looks_at(500), looks_at(4000));
                assert!(long <= 9 * short + 100, "{template:?} {piece}: {short}, then {long}");
            }
        }
    }
}
