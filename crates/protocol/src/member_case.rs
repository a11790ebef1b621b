//! Members with names that differ from one of the protocol only in case.
//!
//! JSON names are case-sensitive, but several decoders match them without regard to case (Go's `encoding/json`, Jackson and
//! .NET where they are configured so). In `{"name":"a","Name":"b"}` such a server runs `b`, while rules and audit log here
//! have seen `a`. A request is therefore refused if a decoder could take one of its members for one that we act upon.
//!
//! # Invariants
//!
//! - A request is rejected if a case-insensitive decoder could read an unknown member as a known one:
//!   `members_that_differ_only_in_case_are_rejected`. A hub does not forward it:
//!   `call_with_case_variant_of_a_member_is_refused_before_the_server`.

use crate::json::{JsonKind, JsonScanner, RawJson};
use crate::meta;
use crate::refusal::Refusal;
use crate::shorten::shorten;

/// The parameters of every request and notification that a client may send, in any revision.
const PARAMS: [&str; 23] = [
    "name",
    "arguments",
    "_meta",
    "uri",
    "cursor",
    "requestState",
    "inputResponses",
    "ref",
    "argument",
    "context",
    "level",
    "task",
    "taskId",
    "notifications",
    "protocolVersion",
    "capabilities",
    "clientInfo",
    "requestId",
    "reason",
    "progressToken",
    "progress",
    "total",
    "message",
];

/// The parameters that are objects of the protocol themselves, with their members. All others are data of a tool, or
/// are not forwarded verbatim.
const NESTED: [(&str, &[&str]); 3] =
    [("ref", &["type", "name", "uri"]), ("argument", &["name", "value"]), ("context", &["arguments"])];

/// The first member of a message that differs from a known one only in case.
#[derive(Default)]
pub(crate) struct MemberCaseCheck {
    found: Option<Box<(String, &'static str)>>,
}

impl MemberCaseCheck {
    /// Checks the name of a member of the envelope, which has to be none of the known ones.
    pub(crate) fn envelope(&mut self, name: &str, known: &[&'static str]) {
        self.check(name, known);
    }

    /// Checks a member of `params`.
    pub(crate) fn param(&mut self, name: &str, value: &RawJson) {
        self.check(name, &PARAMS);
        if let Some((_, known)) = NESTED.iter().find(|(param, _)| *param == name) {
            self.object(value, known);
        }
    }

    /// Checks the name of a member of `_meta`, where only the protocol's own keys mean anything.
    pub(crate) fn meta(&mut self, name: &str) {
        self.check(name, &meta::HOP_BY_HOP);
    }

    /// Returns the refusal of a message with an ambiguous member.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let (name, known) = &**self.found.as_ref()?;
        Some(Refusal::AMBIGUOUS_MEMBER.with_message(format!("`{name}` differs from `{known}` only in case")))
    }

    fn object(&mut self, value: &RawJson, known: &[&'static str]) {
        if value.kind() != JsonKind::Object {
            return;
        }
        let mut scanner = JsonScanner::new(value.text(), JsonScanner::MAX_DEPTH);
        let mut first = true;
        scanner.open_object();
        while let Some(name) = scanner.next_key(first, []) {
            first = false;
            self.check(&name, known);
            scanner.skip();
        }
    }

    fn check(&mut self, name: &str, known: &[&'static str]) {
        if self.found.is_some() {
            return;
        }
        // No two known names are equal without regard to case, so that the first decides.
        if let Some(known) = known.iter().find(|known| equals_ignoring_case(name, known))
            && *known != name
        {
            self.found = Some(Box::new((shorten(name), known)));
        }
    }
}

/// Reports whether a decoder that ignores case could take `name` for `known`, which is ASCII.
fn equals_ignoring_case(name: &str, known: &str) -> bool {
    // Every character that is not ASCII has more bytes than the letter that it may be taken for.
    match name.len().checked_sub(known.len()) {
        None => false,
        Some(0) => name.eq_ignore_ascii_case(known),
        Some(_) => name.chars().map(fold).eq(known.chars().map(fold)),
    }
}

/// Folds a character as far as it can become an ASCII letter.
fn fold(character: char) -> char {
    match character {
        // Unicode simple case folding.
        'ſ' => 's',
        '\u{212a}' => 'k',
        // Not simple folding, but `equalsIgnoreCase` of Java takes both for `i`.
        'İ' | 'ı' => 'i',
        other => other.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_ascii_and_distinct_without_regard_to_case() {
        let nested = NESTED.iter().map(|(_, known)| *known);
        for known in [&PARAMS[..], &meta::HOP_BY_HOP[..]].into_iter().chain(nested) {
            for (index, name) in known.iter().enumerate() {
                assert!(name.is_ascii(), "{name}");
                let rest = &known[index + 1..];
                assert!(!rest.iter().any(|other| equals_ignoring_case(name, other)), "{name}");
            }
        }
    }

    #[test]
    fn characters_that_decoders_fold_to_ascii_are_equal_and_others_are_not() {
        for (name, known, expected) in [
            ("Name", "name", true),
            ("NAME", "name", true),
            ("argumentſ", "arguments", true),
            ("tas\u{212a}", "task", true),
            ("TAſ\u{212a}", "task", true),
            ("urı", "uri", true),
            ("URİ", "uri", true),
            ("namé", "name", false),
            ("names", "name", false),
            ("nam", "name", false),
            ("nameſ", "name", false),
            ("ßub", "ssub", false),
            ("", "name", false),
        ] {
            assert_eq!(equals_ignoring_case(name, known), expected, "{name} and {known}");
        }
    }
}
