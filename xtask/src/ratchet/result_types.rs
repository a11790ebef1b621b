//! The types that the result of a relayed call is wrapped in.
//!
//! A text search cannot follow a result, so the types are listed. Two tests keep the list honest: a listed type that no longer
//! exists fails, and so does an enum that holds a listed type and is in neither list.

use super::source::SourceFile;

/// The types that the result of a relayed call passes through, one after the other, by their crates.
pub(super) const RESULT_TYPES: &[(&str, &str)] = &[
    ("client", "ExchangeEvent"),
    ("client", "StepOutcome"),
    ("server", "HandlerOutcome"),
    ("server", "CallEvent"),
];

/// Enums that hold one of these types and are no type of the path, with the reason.
#[cfg(test)]
const HOLDERS: &[(&str, &str, &str)] = &[
    ("client", "HttpExchangeStage", "the state of an exchange, which keeps an event for the next poll"),
    (
        "server",
        "ChannelCallEvent",
        "the item of a stream with two sources; the event is taken out where it is polled",
    ),
    ("hub", "LoginStep", "what a login decides before the call is repeated"),
];

/// Counts the types on the path of a result.
pub(super) fn count(_: &[SourceFile]) -> f64 {
    super::measure::float(RESULT_TYPES.len())
}

/// Returns what is wrong with the two lists.
#[cfg(test)]
fn outdated(files: &[SourceFile], path: &[(&str, &str)], holders: &[(&str, &str, &str)]) -> Vec<String> {
    let holder = |krate: &str, name: &str| holders.iter().any(|row| (row.0, row.1) == (krate, name));
    let mut found = Vec::new();
    let listed = path.iter().copied().chain(holders.iter().map(|row| (row.0, row.1)));
    for (krate, name) in listed {
        let exists = |file: &SourceFile| file.krate == krate && file.types().any(|found| found == name);
        if !files.iter().any(exists) {
            found.push(format!("{krate}: there is no type `{name}`; remove its row"));
        }
    }
    for file in files {
        for (name, body) in file.enums() {
            let code = body.lines().filter(|line| !line.trim_start().starts_with("//"));
            let mut words = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
            let held = words.find(|word| path.iter().any(|(_, listed)| listed == word));
            let is_listed = path.contains(&(&file.krate, name)) || holder(&file.krate, name);
            if let Some(held) = held
                && !is_listed
            {
                let krate = &file.krate;
                found.push(format!("{krate}: `{name}` holds `{held}` and is in neither list"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source::SourceTree;
    use super::*;

    #[test]
    fn listed_result_types_exist_and_no_enum_wraps_them_unlisted() {
        let tree = SourceTree::read(&crate::root()).unwrap();
        assert_eq!(outdated(&tree.product, RESULT_TYPES, HOLDERS), Vec::<String>::new());
    }

    #[test]
    fn removed_types_and_new_wrappers_are_reported() {
        let files = [SourceFile::new(
            "client",
            "client.rs",
            "enum Outcome {\n    A(u8),\n}\npub enum Wrapper {\n    B(Outcome),\n}\n",
        )];
        let path = [("client", "Outcome")];
        assert_eq!(
            outdated(&files, &path, &[]),
            ["client: `Wrapper` holds `Outcome` and is in neither list"]
        );
        assert!(outdated(&files, &path, &[("client", "Wrapper", "a test")]).is_empty());
        let gone = outdated(&files, &[("client", "Gone")], &[("hub", "Wrapper", "a test")]);
        assert_eq!(gone.len(), 2, "{gone:?}");
    }
}
