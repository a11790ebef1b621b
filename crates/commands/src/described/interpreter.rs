//! Programs that run what they are given as a text: no value may come into such a text.

/// How a program is given the text that it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// In the word behind an option with one of these letters, which may stand with others as in `-lc`.
    Behind(&'static str),
    /// In the first word that is no option.
    First,
    /// In every word behind the first that is no option, such as a host or a database.
    Rest,
    /// In every word behind such an option, which are put together.
    All,
}

/// Programs that read a word as a program of its own, without the version that may be part of their name.
const INTERPRETERS: &[(&str, Takes)] = &[
    ("ash", Takes::Behind("c")),
    ("awk", Takes::First),
    ("bash", Takes::Behind("c")),
    ("bun", Takes::Behind("ep")),
    ("cmd", Takes::All),
    ("csh", Takes::Behind("c")),
    ("dash", Takes::Behind("c")),
    ("deno", Takes::Behind("ep")),
    ("duckdb", Takes::Rest),
    ("elixir", Takes::Behind("e")),
    ("env", Takes::Behind("S")),
    ("fish", Takes::Behind("cC")),
    ("gawk", Takes::First),
    ("ksh", Takes::Behind("c")),
    ("lua", Takes::Behind("e")),
    ("mariadb", Takes::Behind("e")),
    ("mawk", Takes::First),
    ("mksh", Takes::Behind("c")),
    ("mysql", Takes::Behind("e")),
    ("node", Takes::Behind("ep")),
    ("nodejs", Takes::Behind("ep")),
    ("nu", Takes::Behind("c")),
    ("osascript", Takes::Behind("e")),
    ("perl", Takes::Behind("eE")),
    ("php", Takes::Behind("rBRE")),
    ("powershell", Takes::All),
    ("psql", Takes::Behind("c")),
    ("pwsh", Takes::All),
    ("python", Takes::Behind("c")),
    ("R", Takes::Behind("e")),
    ("Rscript", Takes::Behind("e")),
    ("ruby", Takes::Behind("e")),
    ("sed", Takes::First),
    ("sh", Takes::Behind("c")),
    ("sqlite", Takes::Rest),
    ("ssh", Takes::Rest),
    ("su", Takes::Behind("c")),
    ("tcsh", Takes::Behind("c")),
    ("zsh", Takes::Behind("c")),
];

/// Options that have a program behind them, whatever they belong to.
const LONG: &[&str] = &[
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

/// Programs that run another one, which is named behind them, each with the letters of its options that have a value.
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

/// What a place on a command line would let a caller choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Danger {
    /// A part of a text that is run.
    Text,
    /// The program that is run.
    Program,
}

/// Tells what a value would become by the words before it, and by what stands before it in its own word.
///
/// It knows the usual programs; what it does not know is up to whoever describes the command.
pub(super) fn danger(before: &[&str], prefix: &str) -> Option<Danger> {
    // Others than wrappers run programs too (`docker exec web sh -c …`), so an interpreter may stand anywhere.
    let text = (0..before.len()).any(|at| {
        let (words, arguments) = (before.get(at), before.get(at + 1..).unwrap_or_default());
        let takes = words.and_then(|word| takes(word));
        takes.is_some_and(|takes| match takes {
            Takes::First | Takes::Rest if !is_run(before, at) => false,
            takes => reads(takes, arguments, prefix),
        })
    });
    let chosen = || !before.is_empty() && is_run(before, before.len());
    match text {
        true => Some(Danger::Text),
        false => (prefix.is_empty() && chosen()).then_some(Danger::Program),
    }
}

/// Reports whether the word at a place is the program, or stands behind nothing but wrappers and what belongs to them.
fn is_run(before: &[&str], at: usize) -> bool {
    let mut options = "";
    let mut has_value = false;
    let belongs = before.iter().take(at).enumerate().all(|(nth, word)| {
        let is_value = std::mem::take(&mut has_value);
        if let Some(letters) = wrapper(word).filter(|_| !is_value) {
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

/// Returns the options of a wrapper that have a value; `None` for anything else.
fn wrapper(word: &str) -> Option<&'static str> {
    WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name(word)).map(|(_, letters)| *letters)
}

/// Reports whether an option has its value in the next word; a long one may.
fn takes_value(word: &str, letters: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => !long.is_empty() && !long.contains('='),
        None => word.starts_with('-') && word.ends_with(|c| letters.contains(c)),
    }
}

/// Returns the name of a program without its folder, its version and its extension.
fn name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

fn takes(word: &str) -> Option<Takes> {
    INTERPRETERS.iter().find(|(interpreter, _)| *interpreter == name(word)).map(|(_, takes)| *takes)
}

/// Reports whether an interpreter with these arguments reads what comes next as a program.
fn reads(takes: Takes, arguments: &[&str], prefix: &str) -> bool {
    let last = arguments.last().copied().unwrap_or_default();
    let is_long = |word: &str| LONG.contains(&word.trim_end_matches('='));
    match takes {
        // In one word, as in `--eval={x}` and `-c{x}`, or in two.
        Takes::Behind(letters) => {
            [last, prefix].iter().any(|word| is_long(word) || has_letter(word, letters))
        }
        Takes::All => arguments.iter().chain([&prefix]).any(|word| is_long(word)),
        Takes::First => {
            is_long(last)
                || is_long(prefix)
                || has_letter(last, "e")
                || has_letter(prefix, "e")
                || (!matches!(last, "-v" | "-F" | "-l" | "--assign" | "--field-separator")
                    && !prefix.starts_with('-')
                    && is_first(arguments))
        }
        // An option of ssh may start a program as well (`-o ProxyCommand=…`).
        Takes::Rest => {
            is_long(last)
                || matches!(last, "-o" | "-c")
                || prefix.starts_with("-o")
                || arguments.iter().any(|word| !word.starts_with('-'))
        }
    }
}

/// Reports whether no word was the program yet, among the arguments of one that takes it first.
fn is_first(arguments: &[&str]) -> bool {
    let mut given = false;
    for (at, word) in arguments.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| arguments.get(at)).copied().unwrap_or_default();
        let is_value = matches!(before, "-v" | "-F" | "-l" | "--assign" | "--field-separator");
        given |= !is_value && (!word.starts_with('-') || word.starts_with("--file="));
    }
    !given
}

/// Reports whether a word is an option of letters with one of these among them.
fn has_letter(word: &str, letters: &str) -> bool {
    let Some(given) = word.strip_prefix('-').filter(|given| !given.starts_with('-')) else { return false };
    given.chars().all(|c| c.is_ascii_alphabetic()) && given.contains(|c| letters.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_programs_are_known_by_what_stands_before_them() {
        for (line, expected) in [
            ("sh -c", Some(Danger::Text)),
            ("/bin/bash -lc", Some(Danger::Text)),
            ("bash -ce", Some(Danger::Text)),
            ("env A=b sh -c", Some(Danger::Text)),
            ("sudo -n python3 -c", Some(Danger::Text)),
            ("sudo -u ann sh -c", Some(Danger::Text)),
            ("timeout 5 sh -c", Some(Danger::Text)),
            ("docker exec web sh -c", Some(Danger::Text)),
            ("kubectl exec web -- sh -c", Some(Danger::Text)),
            ("find . -exec sh -c", Some(Danger::Text)),
            ("python3.12 -c", Some(Danger::Text)),
            ("python3 +-c", Some(Danger::Text)),
            ("perl +-e", Some(Danger::Text)),
            ("perl -ne", Some(Danger::Text)),
            ("node -e", Some(Danger::Text)),
            ("node --eval", Some(Danger::Text)),
            ("node +--eval=", Some(Danger::Text)),
            ("deno eval", Some(Danger::Text)),
            ("cmd.exe /c", Some(Danger::Text)),
            ("cmd.exe /c type", Some(Danger::Text)),
            ("pwsh -Command Get-Item", Some(Danger::Text)),
            ("psql -c", Some(Danger::Text)),
            ("awk", Some(Danger::Text)),
            ("awk -F:", Some(Danger::Text)),
            ("awk -F :", Some(Danger::Text)),
            ("awk -v a=b", Some(Danger::Text)),
            ("sudo -u ann awk", Some(Danger::Text)),
            ("sed -n", Some(Danger::Text)),
            ("sed -n -e p -e", Some(Danger::Text)),
            ("sed +--expression=", Some(Danger::Text)),
            ("sqlite3 db", Some(Danger::Text)),
            ("sqlite3 -cmd", Some(Danger::Text)),
            ("ssh host", Some(Danger::Text)),
            ("ssh -o", Some(Danger::Text)),
            ("ssh +-oProxyCommand=", Some(Danger::Text)),
            ("env", Some(Danger::Program)),
            ("env A=b", Some(Danger::Program)),
            ("timeout 5", Some(Danger::Program)),
            ("sudo -u ann", Some(Danger::Program)),
            ("sudo -n", Some(Danger::Program)),
            ("env -i A=b", Some(Danger::Program)),
            ("sudo -n nice -n 5", Some(Danger::Program)),
            ("env -S", Some(Danger::Text)),
            ("env +--split-string=", Some(Danger::Text)),
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
            assert_eq!(danger(&words, prefix), expected, "{line}");
        }
    }
}
