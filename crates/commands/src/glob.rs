//! Glob patterns over the segments of a path, of commands or of files.

/// Matches with backtracking to the last `**`: it takes one more segment whenever the rest does not match.
///
/// `fits` reports whether a pattern word matches a segment, also for words that match any number of segments.
pub(crate) fn matches(
    words: &[String],
    path: &[&str],
    is_any_number: impl Fn(usize) -> bool,
    fits: impl Fn(&str, &str) -> bool,
) -> bool {
    let (mut word, mut step) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while step < path.len() || word < words.len() {
        if is_any_number(word) {
            back = Some((word, step));
            word += 1;
            continue;
        }
        let takes = |word: usize, step: usize| match (words.get(word), path.get(step)) {
            (Some(pattern), Some(segment)) => fits(pattern, segment),
            _ => false,
        };
        if takes(word, step) {
            (word, step) = (word + 1, step + 1);
        } else {
            match back {
                Some((any, from)) if takes(any, from) => {
                    back = Some((any, from + 1));
                    (word, step) = (any + 1, from + 1);
                }
                _ => return false,
            }
        }
    }
    true
}

/// Matches one file or folder name; a leading dot has to be matched explicitly.
pub(crate) fn matches_name(pattern: &str, name: &str) -> bool {
    (pattern.starts_with('.') || !name.starts_with('.')) && matches_word(pattern, name)
}

/// Matches one word, in which `*` is any number of characters and `?` is one.
pub(crate) fn matches_word(pattern: &str, segment: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_matches_leading_dots_only_explicitly() {
        for (pattern, path, expected) in [
            ("**/a.yaml", "a.yaml", true),
            ("**/a.yaml", "b/c/a.yaml", true),
            ("**/a.yaml", ".b/a.yaml", false),
            ("**/a.yaml", "b/.c/a.yaml", false),
            ("**/.c/**/a.yaml", "b/.c/d/a.yaml", true),
            ("**/.c/**/a.yaml", ".c/.c/a.yaml", false),
            (".github/*", ".github/a", true),
            (".github/*", ".github/.a", false),
            ("*/*", ".github/a", false),
            ("**/.env*", "b/.env.sample", true),
            ("**", "b/.env", false),
            ("**", "b/c", true),
        ] {
            let words: Vec<String> = pattern.split('/').map(str::to_owned).collect();
            let path: Vec<&str> = path.split('/').collect();
            let is_any = |at: usize| words.get(at).is_some_and(|word| word == "**");
            assert_eq!(matches(&words, &path, is_any, matches_name), expected, "{pattern} {path:?}");
        }
    }
}
