/// Finds the name that was most probably meant, if one is near enough.
pub(crate) fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A suggestion may differ by a third of the letters; beyond that it is another word.
    let allowed = (wrong.chars().count() / 3).clamp(1, 4);
    // The comparison costs the product of both lengths, and a long text is not a misspelled name.
    if wrong.len() > 64 {
        return None;
    }
    let lower = wrong.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .filter(|name| name.len() <= 64)
        .map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase().replace('-', "_")), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_name_is_suggested_only_within_the_distance_limit() {
        let known = ["command", "args", "env", "url", "headers", "enabled"];
        let table = [
            ("comand", Some("command")),
            ("Command", Some("command")),
            ("arg", Some("args")),
            ("evn", Some("env")),
            ("heders", Some("headers")),
            ("enable", Some("enabled")),
            ("colour", None),
            ("x", None),
            ("", None),
        ];
        for (wrong, expected) in table {
            assert_eq!(nearest(wrong, known), expected, "{wrong}");
        }
        assert_eq!(nearest(&"a".repeat(1 << 20), known), None);
    }
}
