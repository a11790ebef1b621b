//! Interpreters, which execute an argument as code: no value may become part of that code.

/// Which argument an interpreter executes as code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodePosition {
    /// The word after an option with one of these letters, which may be combined with others as in `-lc`.
    AfterOption(&'static str),
    /// The first word that is not an option.
    FirstArgument,
    /// Every word after the first non-option, such as a host or a database.
    LaterArguments,
    /// Every word after such an option; the words are joined.
    AllAfterOption,
}

/// Programs that execute a word as code, by name without version.
const INTERPRETERS: &[(&str, CodePosition)] = &[
    ("ash", CodePosition::AfterOption("c")),
    ("awk", CodePosition::FirstArgument),
    ("bash", CodePosition::AfterOption("c")),
    ("bun", CodePosition::AfterOption("ep")),
    ("cmd", CodePosition::AllAfterOption),
    ("csh", CodePosition::AfterOption("c")),
    ("dash", CodePosition::AfterOption("c")),
    ("deno", CodePosition::AfterOption("ep")),
    ("duckdb", CodePosition::LaterArguments),
    ("elixir", CodePosition::AfterOption("e")),
    ("env", CodePosition::AfterOption("S")),
    ("fish", CodePosition::AfterOption("cC")),
    ("gawk", CodePosition::FirstArgument),
    ("ksh", CodePosition::AfterOption("c")),
    ("lua", CodePosition::AfterOption("e")),
    ("mariadb", CodePosition::AfterOption("e")),
    ("mawk", CodePosition::FirstArgument),
    ("mksh", CodePosition::AfterOption("c")),
    ("mysql", CodePosition::AfterOption("e")),
    ("node", CodePosition::AfterOption("ep")),
    ("nodejs", CodePosition::AfterOption("ep")),
    ("nu", CodePosition::AfterOption("c")),
    ("osascript", CodePosition::AfterOption("e")),
    ("perl", CodePosition::AfterOption("eE")),
    ("php", CodePosition::AfterOption("rBRE")),
    ("powershell", CodePosition::AllAfterOption),
    ("psql", CodePosition::AfterOption("c")),
    ("pwsh", CodePosition::AllAfterOption),
    ("python", CodePosition::AfterOption("c")),
    ("R", CodePosition::AfterOption("e")),
    ("Rscript", CodePosition::AfterOption("e")),
    ("ruby", CodePosition::AfterOption("e")),
    ("sed", CodePosition::FirstArgument),
    ("sh", CodePosition::AfterOption("c")),
    ("sqlite", CodePosition::LaterArguments),
    ("ssh", CodePosition::LaterArguments),
    ("su", CodePosition::AfterOption("c")),
    ("tcsh", CodePosition::AfterOption("c")),
    ("zsh", CodePosition::AfterOption("c")),
];

/// Options that are followed by code, in any program.
const CODE_OPTIONS: &[&str] = &[
    "--command",
    "--eval",
    "--execute",
    "--expression",
    "--print",
    "--run",
    "--source",
    "--split-string",
    "-Command",
    "-EncodedCommand",
    "-cmd",
    "/C",
    "/c",
    "/k",
    "eval",
];

/// Programs that run another program, each with the letters of its options that take a value.
const WRAPPERS: &[(&str, &str)] = &[
    ("busybox", ""),
    ("doas", "uC"),
    ("env", "uCS"),
    ("ionice", "cnp"),
    ("nice", "n"),
    ("nohup", ""),
    ("setsid", ""),
    ("stdbuf", "ioe"),
    ("sudo", "ugphCrtTUDR"),
    ("time", "fo"),
    ("timeout", "ks"),
    ("xargs", "IPnLdEsa"),
];

/// What a placeholder on a command line would let a caller choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InjectionRisk {
    /// A part of code.
    Code,
    /// The program that is run.
    Program,
}

/// Returns the risk of a value, by the words before it and by its prefix in the same word.
///
/// It knows the common programs; for others, the author of the command is responsible.
pub(super) fn injection_risk(before: &[&str], prefix: &str) -> Option<InjectionRisk> {
    // Not only wrappers run programs (`docker exec web sh -c …`), so an interpreter may occur anywhere.
    let text = (0..before.len()).any(|at| {
        let (words, arguments) = (before.get(at), before.get(at + 1..).unwrap_or_default());
        let position = words.and_then(|word| code_position(word));
        position.is_some_and(|position| match position {
            CodePosition::FirstArgument | CodePosition::LaterArguments if !is_program_word(before, at) => {
                false
            }
            position => reads_code(position, arguments, prefix),
        })
    });
    let chosen = || !before.is_empty() && is_program_word(before, before.len());
    match text {
        true => Some(InjectionRisk::Code),
        false => (prefix.is_empty() && chosen()).then_some(InjectionRisk::Program),
    }
}

/// Reports whether the word at an index is the program, or follows only wrappers and their options.
fn is_program_word(before: &[&str], at: usize) -> bool {
    let mut options = "";
    let mut has_value = false;
    let belongs = before.iter().take(at).enumerate().all(|(nth, word)| {
        let is_value = std::mem::take(&mut has_value);
        if let Some(letters) = wrapper_options(word).filter(|_| !is_value) {
            options = letters;
            return true;
        }
        has_value = !is_value && takes_value(word, options);
        let detail =
            word.starts_with('-') || word.contains('=') || word.starts_with(|c: char| c.is_ascii_digit());
        nth > 0 && (is_value || detail)
    });
    belongs && !has_value
}

/// Returns the letters of a wrapper's options that take a value; `None` for other words.
fn wrapper_options(word: &str) -> Option<&'static str> {
    WRAPPERS.iter().find(|(wrapper, _)| *wrapper == program_name(word)).map(|(_, letters)| *letters)
}

/// Reports whether an option takes its value from the next word; a long one may.
fn takes_value(word: &str, letters: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => !long.is_empty() && !long.contains('='),
        None => word.starts_with('-') && word.ends_with(|c| letters.contains(c)),
    }
}

/// Returns the name of a program without its folder, its version and its extension.
fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

fn code_position(word: &str) -> Option<CodePosition> {
    INTERPRETERS
        .iter()
        .find(|(interpreter, _)| *interpreter == program_name(word))
        .map(|(_, position)| *position)
}

/// Reports whether an interpreter with these arguments executes the next word as code.
fn reads_code(position: CodePosition, arguments: &[&str], prefix: &str) -> bool {
    let last = arguments.last().copied().unwrap_or_default();
    let is_long = |word: &str| CODE_OPTIONS.contains(&word.trim_end_matches('='));
    match position {
        // In one word, as in `--eval={x}` and `-c{x}`, or in two.
        CodePosition::AfterOption(letters) => {
            [last, prefix].iter().any(|word| is_long(word) || has_letter(word, letters))
        }
        CodePosition::AllAfterOption => arguments.iter().chain([&prefix]).any(|word| is_long(word)),
        CodePosition::FirstArgument => {
            is_long(last)
                || is_long(prefix)
                || has_letter(last, "e")
                || has_letter(prefix, "e")
                || (!matches!(last, "-v" | "-F" | "-l" | "--assign" | "--field-separator")
                    && !prefix.starts_with('-')
                    && is_first_argument(arguments))
        }
        // An option of ssh may start a program as well (`-o ProxyCommand=…`).
        CodePosition::LaterArguments => {
            is_long(last)
                || matches!(last, "-o" | "-c")
                || prefix.starts_with("-o")
                || arguments.iter().any(|word| !word.starts_with('-'))
        }
    }
}

/// Reports whether no argument was the code yet, for an interpreter that takes the code first.
fn is_first_argument(arguments: &[&str]) -> bool {
    let mut given = false;
    for (at, word) in arguments.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| arguments.get(at)).copied().unwrap_or_default();
        let is_value = matches!(before, "-v" | "-F" | "-l" | "--assign" | "--field-separator");
        given |= !is_value && (!word.starts_with('-') || word.starts_with("--file="));
    }
    !given
}

/// Reports whether a word is a short option cluster with one of these letters.
fn has_letter(word: &str, letters: &str) -> bool {
    let Some(given) = word.strip_prefix('-').filter(|given| !given.starts_with('-')) else { return false };
    given.chars().all(|c| c.is_ascii_alphabetic()) && given.contains(|c| letters.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_arguments_of_interpreters_are_detected_by_the_preceding_words() {
        for (line, expected) in [
            ("sh -c", Some(InjectionRisk::Code)),
            ("/bin/bash -lc", Some(InjectionRisk::Code)),
            ("bash -ce", Some(InjectionRisk::Code)),
            ("env A=b sh -c", Some(InjectionRisk::Code)),
            ("sudo -n python3 -c", Some(InjectionRisk::Code)),
            ("sudo -u ann sh -c", Some(InjectionRisk::Code)),
            ("timeout 5 sh -c", Some(InjectionRisk::Code)),
            ("docker exec web sh -c", Some(InjectionRisk::Code)),
            ("kubectl exec web -- sh -c", Some(InjectionRisk::Code)),
            ("find . -exec sh -c", Some(InjectionRisk::Code)),
            ("python3.12 -c", Some(InjectionRisk::Code)),
            ("python3 +-c", Some(InjectionRisk::Code)),
            ("perl +-e", Some(InjectionRisk::Code)),
            ("perl -ne", Some(InjectionRisk::Code)),
            ("node -e", Some(InjectionRisk::Code)),
            ("node --eval", Some(InjectionRisk::Code)),
            ("node +--eval=", Some(InjectionRisk::Code)),
            ("deno eval", Some(InjectionRisk::Code)),
            ("cmd.exe /c", Some(InjectionRisk::Code)),
            ("cmd.exe /c type", Some(InjectionRisk::Code)),
            ("pwsh -Command Get-Item", Some(InjectionRisk::Code)),
            ("psql -c", Some(InjectionRisk::Code)),
            ("awk", Some(InjectionRisk::Code)),
            ("awk -F:", Some(InjectionRisk::Code)),
            ("awk -F :", Some(InjectionRisk::Code)),
            ("awk -v a=b", Some(InjectionRisk::Code)),
            ("sudo -u ann awk", Some(InjectionRisk::Code)),
            ("sed -n", Some(InjectionRisk::Code)),
            ("sed -n -e p -e", Some(InjectionRisk::Code)),
            ("sed +--expression=", Some(InjectionRisk::Code)),
            ("sqlite3 db", Some(InjectionRisk::Code)),
            ("sqlite3 -cmd", Some(InjectionRisk::Code)),
            ("ssh host", Some(InjectionRisk::Code)),
            ("ssh -o", Some(InjectionRisk::Code)),
            ("ssh +-oProxyCommand=", Some(InjectionRisk::Code)),
            ("env", Some(InjectionRisk::Program)),
            ("env A=b", Some(InjectionRisk::Program)),
            ("timeout 5", Some(InjectionRisk::Program)),
            ("sudo -u ann", Some(InjectionRisk::Program)),
            ("sudo -n", Some(InjectionRisk::Program)),
            ("env -i A=b", Some(InjectionRisk::Program)),
            ("sudo -n nice -n 5", Some(InjectionRisk::Program)),
            ("env -S", Some(InjectionRisk::Code)),
            ("env +--split-string=", Some(InjectionRisk::Code)),
            ("ssh", None),
            ("awk {print}", None),
            ("awk -v +n=", None),
            ("awk -F", None),
            ("sed -e p", None),
            ("sqlite3", None),
            ("sh script.sh", None),
            ("sh", None),
            ("bash -e", None),
            ("python3 -m json.tool", None),
            ("git -c", None),
            ("git sed", None),
            ("curl -e", None),
            ("sudo -u", None),
            ("nice -n", None),
            ("sudo --user", None),
            ("sudo -n systemctl restart", None),
            ("nice -n 10 make", None),
            ("git", None),
            ("env +NAME=", None),
            ("env ls", None),
            ("", None),
        ] {
            let mut words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
            let prefix =
                words.pop_if(|word| word.starts_with('+')).map_or("", |word| word.trim_start_matches('+'));
            assert_eq!(injection_risk(&words, prefix), expected, "{line}");
        }
    }
}
