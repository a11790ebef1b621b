use std::fmt;

/// A pattern over the words of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    words: Vec<String>,
}

/// The most words that a pattern may have, so that matching one stays cheap.
const MOST_WORDS: usize = 32;

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        match words.len() {
            0 => Err("names no command".to_owned()),
            1..=MOST_WORDS => Ok(Self { words }),
            _ => Err(format!("has more than {MOST_WORDS} words")),
        }
    }

    pub(super) fn matches(&self, path: &[&str]) -> bool {
        matches(&self.words, path)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join(" "))
    }
}

/// Matches with one step back at a time: the last `**` takes one word more whenever the rest does not fit.
fn matches(words: &[String], path: &[&str]) -> bool {
    let is_any_number = |at: usize| match words.get(at).map(String::as_str) {
        Some("**") => true,
        Some("*") => at + 1 == words.len(),
        _ => false,
    };
    let (mut word, mut step) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while step < path.len() || word < words.len() {
        if is_any_number(word) {
            back = Some((word, step));
            word += 1;
            continue;
        }
        let fits = match (words.get(word), path.get(step)) {
            (Some(pattern), Some(segment)) => fits(pattern, segment),
            _ => false,
        };
        if fits {
            (word, step) = (word + 1, step + 1);
        } else {
            match back {
                Some((any, from)) if from < path.len() => {
                    back = Some((any, from + 1));
                    (word, step) = (any + 1, from + 1);
                }
                _ => return false,
            }
        }
    }
    true
}

/// Matches one word, in which `*` is any characters and `?` one.
fn fits(pattern: &str, segment: &str) -> bool {
    let (pattern, segment): (Vec<char>, Vec<char>) = (pattern.chars().collect(), segment.chars().collect());
    let (mut p, mut s) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while s < segment.len() || p < pattern.len() {
        match (pattern.get(p), segment.get(s)) {
            (Some('*'), _) => {
                back = Some((p, s));
                p += 1;
            }
            (Some('?'), Some(_)) => (p, s) = (p + 1, s + 1),
            (Some(wanted), Some(there)) if wanted == there => (p, s) = (p + 1, s + 1),
            _ => match back {
                Some((star, from)) if from < segment.len() => {
                    back = Some((star, from + 1));
                    (p, s) = (star + 1, from + 1);
                }
                _ => return false,
            },
        }
    }
    true
}
