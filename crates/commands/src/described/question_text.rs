//! Formats values in a confirmation question: quoted and escaped, so that no value can pass for the question
//! itself.

/// The longest value, in characters.
const MAX_CHARACTERS: usize = 200;

/// How many characters of a longer value are taken from its end.
const TAIL_CHARACTERS: usize = 60;

/// The most values of one argument.
const MAX_VALUES: usize = 10;

/// Formats the values of one argument.
pub(super) fn format_values(texts: &[String]) -> String {
    let mut all: Vec<String> = texts.iter().take(MAX_VALUES).map(|text| format_value(text)).collect();
    let more = texts.len().saturating_sub(MAX_VALUES);
    all.extend((more > 0).then(|| format!("{more} more")));
    all.join(", ")
}

/// Formats one value: a plain word as it is, anything else in quotes.
fn format_value(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:@+=%".contains(c);
    let length = text.chars().count();
    if length <= MAX_CHARACTERS && !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    if length <= MAX_CHARACTERS {
        return format!("\"{}\"", escaped(text.chars()));
    }
    // The end is shown too, since a caller would hide something at the end of a long value.
    let start = escaped(text.chars().take(MAX_CHARACTERS - TAIL_CHARACTERS));
    let end = escaped(text.chars().skip(length - TAIL_CHARACTERS));
    format!("\"{start}\" … {} characters … \"{end}\"", length - MAX_CHARACTERS)
}

/// Escapes invisible and control characters.
fn escaped(characters: impl Iterator<Item = char>) -> String {
    let mut out = String::new();
    for c in characters {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() || is_invisible(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

/// Reports whether a character is invisible, or changes the text direction.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_questions_are_quoted_and_escaped() {
        let long = "a".repeat(150) + &"b".repeat(100);
        let shortened = format!("\"{}\" … 50 characters … \"{}\"", "a".repeat(140), "b".repeat(60));
        for (texts, expected) in [
            (vec!["main"], "main"),
            (vec!["feature/größe-2"], "feature/größe-2"),
            (vec!["a b"], "\"a b\""),
            (vec![""], "\"\""),
            (vec!["x?\nAll is well"], "\"x?\\nAll is well\""),
            (vec!["a\", force = \"true"], "\"a\\\", force = \\\"true\""),
            (vec!["\u{1b}[2K\u{202e}txt"], "\"\\u{1b}[2K\\u{202e}txt\""),
            (vec!["a", "b c"], "a, \"b c\""),
            (vec!["a"; 12], "a, a, a, a, a, a, a, a, a, a, 2 more"),
            (vec![&long], &shortened),
        ] {
            let texts: Vec<String> = texts.into_iter().map(str::to_owned).collect();
            assert_eq!(format_values(&texts), expected);
        }
    }
}
