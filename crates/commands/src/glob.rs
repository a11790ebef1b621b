//! Patterns over the segments of a path, of commands or of files.

/// Matches with one step back at a time: what stands for any number of segments takes one more whenever the rest does not fit.
pub(crate) fn matches(words: &[String], path: &[&str], is_any_number: impl Fn(usize) -> bool) -> bool {
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
pub(crate) fn fits(pattern: &str, segment: &str) -> bool {
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
