/// Below this two names are not alike enough for one to be meant by the other.
const MIN_SIMILARITY: f64 = 0.72;

/// Returns the name that was probably meant.
pub(crate) fn nearest<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let folded = normalize(typed);
    let scored = names.into_iter().map(|name| (similarity(&folded, &normalize(name)), name));
    let best = scored.filter(|(score, _)| *score >= MIN_SIMILARITY).max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map(|(_, name)| name)
}

/// Writes `; did you mean `x`?` if there is a name that was probably meant.
pub(crate) fn did_you_mean<'n>(typed: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    nearest(typed, names).map(|name| format!("did you mean `{name}`?"))
}

fn similarity(typed: &str, name: &str) -> f64 {
    if typed.is_empty() || name.is_empty() {
        return 0.0;
    }
    if typed == name {
        return 1.0;
    }
    // A whole word within a longer name is what users remember of it.
    if typed.len().min(name.len()) >= 3 && (name.contains(typed) || typed.contains(name)) {
        return 0.9;
    }
    strsim::normalized_damerau_levenshtein(typed, name).max(strsim::jaro_winkler(typed, name) - 0.12)
}

/// Leaves out what is typed in one way here and in another there.
fn normalize(name: &str) -> String {
    // Names come from servers: no user types more than this, and the comparison costs the product of the lengths.
    name.chars()
        .take(128)
        .filter(|c| !matches!(c, '-' | '_' | '.' | '/'))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_correct_name_is_suggested() {
        let names = ["read_file", "write_file", "list_directory", "add", "getWeather"];
        for (typed, expected) in [
            ("raed_file", Some("read_file")),
            ("readFile", Some("read_file")),
            ("read-file", Some("read_file")),
            ("directory", Some("list_directory")),
            ("ad", Some("add")),
            ("get_weather", Some("getWeather")),
            ("ADD", Some("add")),
            ("subtract", None),
            ("", None),
            ("zzz", None),
        ] {
            assert_eq!(nearest(typed, names), expected, "{typed}");
        }
        assert_eq!(nearest("x", []), None);
        assert_eq!(nearest("nosuch", ["a", "c", "no"]), None, "a letter of a word is not meant by it");
    }
}
