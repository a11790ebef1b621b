//! Patterns that every engine for the regular expressions of JavaScript reads, in its strict mode.
//!
//! It is a part of their grammar: references to groups, names of groups and names of most properties are left out, since
//! whether those are right depends on more than their place.

/// The deepest nesting of groups.
const MAX_GROUP_DEPTH: usize = 32;

/// The characters that mean something.
const SYNTAX: &[u8] = b"^$\\.*+?()[]{}|/";

/// Properties of characters that every engine knows.
const PROPERTIES: [&str; 12] = ["L", "Lu", "Ll", "Lt", "Lm", "Lo", "N", "Nd", "P", "S", "Z", "M"];

/// Reports whether a pattern is one that every engine reads.
pub(super) fn is_pattern(pattern: &str) -> bool {
    let mut reader = PatternReader { rest: pattern };
    reader.alternatives(0) && reader.rest.is_empty()
}

struct PatternReader<'p> {
    rest: &'p str,
}

/// One end of a range within a character class.
#[derive(Clone, Copy)]
enum ClassAtom {
    One(u32),
    Several,
}

impl PatternReader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    /// Takes what comes next if it is this.
    fn take(&mut self, expected: &str) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads alternatives up to the end of the group that they are in.
    fn alternatives(&mut self, depth: usize) -> bool {
        if depth > MAX_GROUP_DEPTH {
            return false;
        }
        while let Some(next) = self.peek() {
            let is_read = match next {
                ')' => return true,
                '|' => self.take("|"),
                _ => self.term(depth),
            };
            if !is_read {
                return false;
            }
        }
        true
    }

    /// Reads one atom with its quantifier.
    fn term(&mut self, depth: usize) -> bool {
        if ["^", "$", "\\b", "\\B"].iter().any(|assertion| self.take(assertion)) {
            return true;
        }
        if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|look| self.take(look)) {
            return self.alternatives(depth + 1) && self.take(")");
        }
        let is_atom = match self.next() {
            Some('.') => true,
            Some('[') => self.class(),
            Some('(') => {
                let is_plain = self.take("?:") || self.peek() != Some('?');
                is_plain && self.alternatives(depth + 1) && self.take(")")
            }
            Some('\\') => self.escape().is_some(),
            Some(character) => character == '/' || !is_syntax(character),
            None => false,
        };
        is_atom && self.quantifier()
    }

    fn quantifier(&mut self) -> bool {
        let is_there = match self.peek() {
            Some('*' | '+' | '?') => self.next().is_some(),
            Some('{') => {
                if !self.counts() {
                    return false;
                }
                true
            }
            _ => false,
        };
        if is_there {
            self.take("?");
        }
        true
    }

    /// Reads `{2}`, `{2,}` or `{2,3}`.
    fn counts(&mut self) -> bool {
        let Some((counts, rest)) = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            return false;
        };
        self.rest = rest;
        let number = |text: &str| {
            let is_number = (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<u32>().ok()).flatten()
        };
        match counts.split_once(',') {
            None => number(counts).is_some(),
            Some((least, "")) => number(least).is_some(),
            Some((least, most)) => {
                matches!((number(least), number(most)), (Some(least), Some(most)) if least <= most)
            }
        }
    }

    /// Reads a class, behind its bracket.
    fn class(&mut self) -> bool {
        self.take("^");
        loop {
            if self.take("]") {
                return true;
            }
            let Some(from) = self.class_atom() else { return false };
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.take("-");
                match (from, self.class_atom()) {
                    (ClassAtom::One(from), Some(ClassAtom::One(to))) if from <= to => {}
                    _ => return false,
                }
            }
        }
    }

    fn class_atom(&mut self) -> Option<ClassAtom> {
        match self.next()? {
            '\\' if self.take("-") => Some(ClassAtom::One(u32::from('-'))),
            '\\' if self.take("b") => Some(ClassAtom::One(8)),
            '\\' => self.escape(),
            character => Some(ClassAtom::One(u32::from(character))),
        }
    }

    /// Reads what is behind a backslash.
    fn escape(&mut self) -> Option<ClassAtom> {
        let one = |number: u32| Some(ClassAtom::One(number));
        match self.next()? {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => Some(ClassAtom::Several),
            't' => one(9),
            'n' => one(10),
            'v' => one(11),
            'f' => one(12),
            'r' => one(13),
            '0' if !self.rest.starts_with(|next: char| next.is_ascii_digit()) => one(0),
            'x' => self.hexadecimal(2).and_then(one),
            'u' if self.take("{") => {
                let (digits, rest) = self.rest.split_once('}')?;
                self.rest = rest;
                let is_short = (1..=6).contains(&digits.len());
                let is_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_short && is_digits)?;
                one(number).filter(|_| number <= u32::from(char::MAX))
            }
            // Halves of surrogate pairs mean one character together.
            'u' => self.hexadecimal(4).filter(|number| char::from_u32(*number).is_some()).and_then(one),
            'p' | 'P' => {
                let (name, rest) = self.rest.strip_prefix('{')?.split_once('}')?;
                self.rest = rest;
                PROPERTIES.contains(&name).then_some(ClassAtom::Several)
            }
            other if is_syntax(other) => one(u32::from(other)),
            _ => None,
        }
    }

    fn hexadecimal(&mut self, length: usize) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let is_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| is_digits)
    }
}

fn is_syntax(character: char) -> bool {
    u8::try_from(character).is_ok_and(|byte| SYNTAX.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regex_check_accepts_only_portable_strict_patterns() {
        for (pattern, expected) in [
            ("", true),
            ("^[a-z]+$", true),
            (r"^\d{4}-\d{2}-\d{2}$", true),
            (
                r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
                true,
            ),
            (r"a|b|(c|(?:d))*?", true),
            (r"[^\]\\]{1,2}", true),
            (r"\u00e9\x41\u{1F600}\0", true),
            (r"\p{L}\P{Nd}", true),
            ("é{2}", true),
            ("a/b", true),
            ("[]", true),
            ("[a-]", true),
            ("(", false),
            (")", false),
            ("[", false),
            ("]", false),
            ("a{", false),
            ("}", false),
            ("a{2,1}", false),
            ("a{,2}", false),
            ("*", false),
            ("a**", false),
            ("^*", false),
            ("(?=a)*", false),
            ("(?<n>a)", false),
            ("(?i:a)", false),
            (r"\1", false),
            (r"\-", false),
            (r"\a", false),
            (r"\c", false),
            (r"\x4", false),
            (r"\u12", false),
            (r"\u{110000}", false),
            (r"\ud83d", false),
            (r"\p{Nope}", false),
            ("[b-a]", false),
            (r"[\d-z]", false),
            (r"[a-\d]", false),
            ("\\", false),
        ] {
            assert_eq!(is_pattern(pattern), expected, "{pattern}");
        }
        assert!(!is_pattern(&"(".repeat(100_000)));
    }
}
