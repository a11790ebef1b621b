use std::fmt;

use crate::glob;

/// A pattern over the words of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandPattern {
    words: Vec<String>,
}

/// The most words of a pattern, so that matching stays cheap.
const MAX_WORDS: usize = 32;

impl CommandPattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        match words.len() {
            0 => Err("names no command".to_owned()),
            1..=MAX_WORDS => Ok(Self { words }),
            _ => Err(format!("has more than {MAX_WORDS} words")),
        }
    }

    pub(super) fn matches(&self, path: &[&str]) -> bool {
        let is_any_number = |at: usize| match self.words.get(at).map(String::as_str) {
            Some("**") => true,
            Some("*") => at + 1 == self.words.len(),
            _ => false,
        };
        glob::matches(&self.words, path, is_any_number, glob::matches_word)
    }
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join(" "))
    }
}
