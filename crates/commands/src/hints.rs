//! Guesses tool annotations from command names.

use trunkline_server::protocol::model::ToolAnnotations;

/// Verbs of commands that only read.
const READ_VERBS: &[&str] = &[
    "cat",
    "check",
    "describe",
    "diff",
    "explain",
    "find",
    "get",
    "help",
    "info",
    "inspect",
    "list",
    "log",
    "logs",
    "ls",
    "ps",
    "search",
    "show",
    "stat",
    "stats",
    "status",
    "tree",
    "validate",
    "version",
    "--version",
    "view",
    "which",
];

/// Verbs of destructive commands.
const DESTRUCTIVE_VERBS: &[&str] = &[
    "clean",
    "clear",
    "delete",
    "destroy",
    "drop",
    "erase",
    "kill",
    "prune",
    "purge",
    "remove",
    "reset",
    "revoke",
    "rm",
    "terminate",
    "truncate",
    "uninstall",
    "wipe",
];

/// Guesses from the last word of a command's path whether it is read-only or destructive; `None` for other words.
pub(crate) fn guess_annotations(words: &[&str]) -> Option<ToolAnnotations> {
    let verb = words.last()?.to_ascii_lowercase();
    // The verb may be followed by its object, as in `list-users` and `delete_all`.
    let verb = verb.trim_start_matches('-').split(['-', '_']).next().unwrap_or_default();
    let is = |list: &[&str]| list.iter().any(|word| word.trim_start_matches('-') == verb);
    if is(READ_VERBS) {
        return Some(ToolAnnotations { read_only: Some(true), ..ToolAnnotations::default() });
    }
    is(DESTRUCTIVE_VERBS).then(|| ToolAnnotations {
        read_only: Some(false),
        destructive: Some(true),
        ..ToolAnnotations::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_determine_read_only_and_destructive_annotations() {
        for (words, read_only, destructive) in [
            (&["component", "list"][..], Some(true), None),
            (&["list-users"], Some(true), None),
            (&["--version"], Some(true), None),
            (&["component", "delete"], Some(false), Some(true)),
            (&["worker", "delete_all"], Some(false), Some(true)),
            (&["component", "add"], None, None),
            (&["list", "add"], None, None),
            (&["listen"], None, None),
            (&[], None, None),
        ] {
            let hints = guess_annotations(words).unwrap_or_default();
            assert_eq!((hints.read_only, hints.destructive), (read_only, destructive), "{words:?}");
        }
    }
}
