//! Programs that run what they are given as a text: no value may come into such a text.

/// Programs that read a word as a program of its own.
const INTERPRETERS: &[&str] = &[
    "ash",
    "awk",
    "bash",
    "bun",
    "cmd",
    "cmd.exe",
    "csh",
    "dash",
    "deno",
    "fish",
    "gawk",
    "ksh",
    "lua",
    "mawk",
    "mksh",
    "node",
    "nodejs",
    "nu",
    "perl",
    "php",
    "powershell",
    "powershell.exe",
    "pwsh",
    "python",
    "python2",
    "python3",
    "ruby",
    "sed",
    "sh",
    "sqlite3",
    "ssh",
    "su",
    "tcsh",
    "tclsh",
    "zsh",
];

/// Programs that run another one, which is named behind them.
const WRAPPERS: &[&str] =
    &["busybox", "doas", "env", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout", "xargs"];

/// Reports whether a word of a command line is read as a program of its own, by the words before it.
///
/// It knows the usual ones; what it does not know is up to whoever describes the command.
pub(super) fn reads_as_program(before: &[&str]) -> bool {
    let name = |word: &&str| word.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    let mut words = before.iter().skip_while(|word| {
        WRAPPERS.contains(&name(word).as_str()) || word.starts_with('-') || word.contains('=')
    });
    let Some(program) = words.next().map(name) else { return false };
    if !INTERPRETERS.contains(&program.as_str()) {
        return false;
    }
    match program.as_str() {
        // These take their program as the first word that is no option.
        "awk" | "gawk" | "mawk" | "sed" => words.all(|word| word.starts_with('-')),
        // Behind the database, everything is statements; behind the host, everything is a command line.
        "sqlite3" | "ssh" => words.any(|word| !word.starts_with('-')),
        _ => before.last().is_some_and(|word| takes_program(word)),
    }
}

/// Reports whether an option of an interpreter has a program behind it, alone or with others as in `-lc`.
fn takes_program(word: &str) -> bool {
    let letters = |word: &str| word.len() > 1 && !word.starts_with("--") && word.starts_with('-');
    matches!(
        word,
        "--eval" | "--command" | "--print" | "-Command" | "-EncodedCommand" | "/c" | "/C" | "/k" | "eval"
    ) || (letters(word) && word.ends_with(['c', 'e', 'p', 'r', 'E']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_programs_are_known_by_what_stands_before_them() {
        for (before, expected) in [
            (&["sh", "-c"][..], true),
            (&["/bin/bash", "-lc"], true),
            (&["env", "A=b", "sh", "-c"], true),
            (&["sudo", "-n", "python3", "-c"], true),
            (&["node", "-e"], true),
            (&["node", "--eval"], true),
            (&["cmd.exe", "/c"], true),
            (&["awk"], true),
            (&["awk", "-F:"], true),
            (&["sqlite3", "db"], true),
            (&["ssh", "host"], true),
            (&["ssh"], false),
            (&["awk", "{print}"], false),
            (&["sqlite3"], false),
            (&["sh", "script.sh"], false),
            (&["sh"], false),
            (&["python3", "-m", "json.tool"], false),
            (&["git", "-c"], false),
            (&["curl", "-e"], false),
            (&[], false),
        ] {
            assert_eq!(reads_as_program(before), expected, "{before:?}");
        }
    }
}
