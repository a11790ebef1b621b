//! Reading the variables back out of a URI.
//!
//! A template is compiled into steps. For every step, from the last to the first, one row of flags tells at
//! which places of the URI the steps from there on can succeed; a row follows from the later ones in a single
//! pass. A walk from the front then only takes turns that are known to end well, so nothing is tried twice,
//! however ambiguous the template is.
//!
//! # Invariants
//!
//! - Matching takes time linear in the length of the URI, however repetitive it is:
//!   `a_longer_uri_is_looked_at_more_often_in_proportion_whatever_it_repeats`.

use super::MAX_LENGTH;
use super::parse::{TemplateExpression, TemplatePart};
use super::percent::{canonical, decode};
use super::value::{MatchMode, NamedValues, ValueClass, ValueRuns, character_length};

/// One instruction of a compiled template.
#[derive(Debug, Clone)]
pub(super) enum MatchStep {
    /// The URI goes on with these bytes.
    Literal(Vec<u8>),
    /// The steps up to the given one are passed over if they cannot succeed.
    Optional { end: usize },
    /// The URI goes on with a variable's value.
    Capture { name: String, class: ValueClass, may_be_empty: bool },
    /// The URI goes on with any of some named values, or none.
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
        // Without a lead, an empty value could not be told from a missing one.
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
    /// For each step, and once more for the end, the places from where the rest succeeds; row after row.
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
        for place in (0..=self.uri.len()).rev() {
            let succeeds = match step {
                MatchStep::Literal(text) => {
                    self.get(index + 1, place + text.len()) && self.rest(place).starts_with(text)
                }
                MatchStep::Optional { end } => self.get(index + 1, place) || self.get(*end, place),
                MatchStep::Capture { class, may_be_empty, .. } => {
                    let rest = self.rest(place);
                    let after = place + character_length(rest);
                    let longer = class.accepts_first_char(rest, self.mode)
                        && (self.get(index + 1, after) || self.get(index, after));
                    longer || (*may_be_empty && self.get(index + 1, place))
                }
                MatchStep::Named(_) => false,
            };
            if succeeds {
                self.set(index, place);
            }
        }
    }

    fn fill_named(&mut self, index: usize, values: &NamedValues) {
        let runs = ValueRuns::new(values.class, self.uri, self.mode);
        let ends_well = self.value_can_end(index + 1, values.class);
        for place in 0..=self.uri.len() {
            let succeeds = match values.read(self.uri, place, &runs).last() {
                None => self.get(index + 1, place),
                Some((_, last)) => ends_well.get(last.start).copied().unwrap_or(false),
            };
            if succeeds {
                self.set(index, place);
            }
        }
    }

    /// Tells for each place whether a value that begins there, and may be empty, can end where the rest succeeds.
    fn value_can_end(&self, next: usize, class: ValueClass) -> Vec<bool> {
        let mut ends_well = vec![false; self.uri.len() + 1];
        for place in (0..=self.uri.len()).rev() {
            let rest = self.rest(place);
            let longer = class.accepts_first_char(rest, self.mode)
                && ends_well.get(place + character_length(rest)).copied().unwrap_or(false);
            if let Some(flag) = ends_well.get_mut(place) {
                *flag = longer || self.get(next, place);
            }
        }
        ends_well
    }

    /// Collects the values along the one way that is known to succeed, if there is one.
    fn walk(&self) -> Option<Vec<(&'t str, String)>> {
        if !self.get(0, 0) {
            return None;
        }
        let mut values = Vec::new();
        let mut index = 0;
        let mut place = 0;
        while let Some(step) = self.steps.get(index) {
            let mut next = index + 1;
            match step {
                MatchStep::Literal(text) => place += text.len(),
                MatchStep::Optional { end } if !self.get(next, place) => next = *end,
                MatchStep::Optional { .. } => {}
                MatchStep::Capture { name, class, may_be_empty } => {
                    let end = self.longest_value(next, place, *class, *may_be_empty)?;
                    record(&mut values, name, self.uri.get(place..end)?)?;
                    place = end;
                }
                MatchStep::Named(named) => {
                    let runs = ValueRuns::new(named.class, self.uri, self.mode);
                    let mut found = named.read(self.uri, place, &runs);
                    if let Some((_, last)) = found.last_mut() {
                        place = self.longest_value(next, last.start, named.class, true)?;
                        last.end = place;
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

    /// Finds the last place where a value that begins at `start` may end.
    fn longest_value(
        &self,
        next: usize,
        start: usize,
        class: ValueClass,
        may_be_empty: bool,
    ) -> Option<usize> {
        let mut longest = (may_be_empty && self.get(next, start)).then_some(start);
        let mut place = start;
        while class.accepts_first_char(self.rest(place), self.mode) {
            place += character_length(self.rest(place));
            if self.get(next, place) {
                longest = Some(place);
            }
        }
        longest
    }

    fn rest(&self, place: usize) -> &'u [u8] {
        self.uri.get(place..).unwrap_or_default()
    }

    fn get(&self, step: usize, place: usize) -> bool {
        let inside = place <= self.uri.len();
        inside && self.succeeds.get(step * (self.uri.len() + 1) + place).copied().unwrap_or(false)
    }

    fn set(&mut self, step: usize, place: usize) {
        if let Some(flag) = self.succeeds.get_mut(step * (self.uri.len() + 1) + place) {
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
    use super::super::value::looks;

    #[test]
    fn a_longer_uri_is_looked_at_more_often_in_proportion_whatever_it_repeats() {
        for template in
            ["x:{?a}", "x:{?a,b,c}", "x:{&a}{&b}", "x:{;a}{?b}{&c}", "x:{a}{+b}{/c}", "{+a}{?b}{&c}{#d}"]
        {
            let template = UriTemplate::parse(template).unwrap();
            for piece in
                ["?a=", "&a=", ";a=", "?a=&b=", "&a=1&b=", ";a;a", "?", "/", "a", "%C3%A9", "?a=%", "#"]
            {
                let looks_at = |bytes: usize| {
                    let uri = format!("x:{}!", piece.repeat(bytes / piece.len()));
                    looks::take();
                    // Whether it matches is another matter.
                    let _ = template.match_uri(&uri);
                    looks::take()
                };
                let (short, long) = (looks_at(500), looks_at(4000));
                assert!(long <= 9 * short + 100, "{template:?} {piece}: {short}, then {long}");
            }
        }
    }
}
