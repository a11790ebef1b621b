//! What is measured.

use std::collections::HashMap;

use super::result_types;
use super::source::{SourceFile, SourceTree};

/// One number.
pub(super) struct CodeMeasure {
    pub(super) name: &'static str,
    count: fn(&[SourceFile]) -> f64,
    part: SourcePart,
    pub(super) is_better_high: bool,
    /// Where it should get to.
    pub(super) goal: Option<&'static str>,
}

/// The files that a number is measured over.
#[derive(Clone, Copy)]
enum SourcePart {
    /// The crates, without their tests.
    Product,
    /// Tests, examples and the programs around them.
    Tooling,
}

impl CodeMeasure {
    const fn low(name: &'static str, goal: Option<&'static str>, count: fn(&[SourceFile]) -> f64) -> Self {
        Self { name, count, part: SourcePart::Product, is_better_high: false, goal }
    }

    const fn high(name: &'static str, count: fn(&[SourceFile]) -> f64) -> Self {
        Self { name, count, part: SourcePart::Product, is_better_high: true, goal: None }
    }

    const fn over_tooling(self) -> Self {
        Self { part: SourcePart::Tooling, ..self }
    }

    pub(super) fn measure(&self, tree: &SourceTree) -> f64 {
        (self.count)(match self.part {
            SourcePart::Product => &tree.product,
            SourcePart::Tooling => &tree.tooling,
        })
    }

    pub(super) fn is_worse(&self, before: f64, now: f64) -> bool {
        if self.is_better_high { now < before } else { now > before }
    }
}

/// All numbers, in the order of the table.
pub(super) const ALL: &[CodeMeasure] = &[
    CodeMeasure::low("lines of the longest file", Some("under 500"), longest_file),
    CodeMeasure::low("lines of a file, 90th percentile", None, |files| percentile(files, 90)),
    CodeMeasure::low("functions over 60 lines", None, long_functions),
    CodeMeasure::low("lines of the longest function", None, longest_function),
    CodeMeasure::low("type names used twice in one crate", Some("0"), repeated_in_a_crate),
    CodeMeasure::low("types that share their name, in percent", Some("under 10"), shared_percent),
    CodeMeasure::low("type names of one word, in percent", None, one_word_percent),
    CodeMeasure::low("whoever, nobody, … per 1,000 words of comments", Some("under 0.5"), |files| {
        per_thousand(files, PRONOUNS)
    }),
    CodeMeasure::low("says, told, asked, … per 1,000 words of comments", Some("under 1.5"), |files| {
        per_thousand(files, SPEECH)
    }),
    CodeMeasure::low("whoever, nobody, … in tests and tools", Some("under 0.5"), |files| {
        per_thousand(files, PRONOUNS)
    })
    .over_tooling(),
    CodeMeasure::low("says, told, asked, … in tests and tools", Some("under 1.5"), |files| {
        per_thousand(files, SPEECH)
    })
    .over_tooling(),
    CodeMeasure::low("types that a result passes through", Some("at most 4"), result_types::count),
    CodeMeasure::low("public items of the facade's crates", None, facade_items),
    CodeMeasure::high("examples in the documentation", doc_examples),
];

/// Words that leave open who does something.
const PRONOUNS: &[&str] = &[
    "whoever",
    "whomever",
    "nobody",
    "somebody",
    "anybody",
    "everybody",
    "someone",
    "anyone",
    "whose",
    "whom",
];

/// Verbs of speech with a program as their subject.
const SPEECH: &[&str] = &[
    "says", "say", "said", "saying", "tells", "tell", "told", "telling", "hears", "hear", "heard", "asks",
    "asked", "speaks", "speak", "spoken",
];

/// The crates of which the facade makes items public.
const FACADE: &[&str] = &["protocol", "transport", "session", "server", "client", "macros", "trunkline"];

fn longest_file(files: &[SourceFile]) -> f64 {
    float(files.iter().map(SourceFile::lines).max().unwrap_or_default())
}

fn percentile(files: &[SourceFile], percent: usize) -> f64 {
    let mut lines: Vec<_> = files.iter().map(SourceFile::lines).collect();
    lines.sort_unstable();
    float(lines.get(lines.len() * percent / 100).copied().unwrap_or_default())
}

fn long_functions(files: &[SourceFile]) -> f64 {
    float(files.iter().flat_map(SourceFile::function_lengths).filter(|lines| *lines > 60).count())
}

fn longest_function(files: &[SourceFile]) -> f64 {
    float(files.iter().flat_map(SourceFile::function_lengths).max().unwrap_or_default())
}

fn types(files: &[SourceFile]) -> impl Iterator<Item = (&str, &str)> {
    files.iter().flat_map(|file| file.types().map(|name| (&*file.krate, name)))
}

/// Counts the definitions that are not the only one of their kind.
fn repeated<K: Eq + std::hash::Hash>(keys: impl Iterator<Item = K>) -> (usize, usize) {
    let mut counts: HashMap<K, usize> = HashMap::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    (counts.values().filter(|count| **count > 1).sum(), counts.values().sum())
}

fn repeated_in_a_crate(files: &[SourceFile]) -> f64 {
    float(repeated(types(files)).0)
}

fn shared_percent(files: &[SourceFile]) -> f64 {
    let (shared, all) = repeated(types(files).map(|(_, name)| name));
    percent(shared, all)
}

fn one_word_percent(files: &[SourceFile]) -> f64 {
    let is_one_word = |name: &str| name.chars().filter(|c| c.is_uppercase()).count() == 1;
    let one_word = types(files).filter(|(_, name)| is_one_word(name)).count();
    percent(one_word, types(files).count())
}

fn per_thousand(files: &[SourceFile], words: &[&str]) -> f64 {
    let (mut found, mut all) = (0, 0);
    for comment in files.iter().flat_map(SourceFile::comments) {
        for word in comment.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()) {
            all += 1;
            found += usize::from(words.contains(&word.to_lowercase().as_str()));
        }
    }
    rounded(1000.0 * float(found) / float(all).max(1.0))
}

fn facade_items(files: &[SourceFile]) -> f64 {
    let is_item = |line: &&str| {
        let kinds =
            ["fn", "async", "const", "struct", "enum", "trait", "type", "static", "mod", "use", "macro"];
        let item = line.trim_start().strip_prefix("pub ").and_then(|item| item.split(' ').next());
        item.is_some_and(|word| kinds.contains(&word))
    };
    let files = files.iter().filter(|file| FACADE.contains(&&*file.krate));
    float(files.flat_map(|file| file.text.lines()).filter(is_item).count())
}

/// Counts blocks of Rust in documentation.
fn doc_examples(files: &[SourceFile]) -> f64 {
    let mut count = 0;
    for file in files {
        let mut is_open = false;
        for comment in file.comments() {
            let Some(language) = comment.trim_start().strip_prefix("```") else { continue };
            is_open = !is_open;
            let is_rust =
                language.is_empty() || ["rust", "no_run", "should_panic", "compile_fail"].contains(&language);
            count += usize::from(is_open && is_rust);
        }
    }
    float(count)
}

fn percent(part: usize, all: usize) -> f64 {
    rounded(100.0 * float(part) / float(all).max(1.0))
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[expect(clippy::cast_precision_loss, reason = "counts of lines and words are far below 2^52")]
pub(super) fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<SourceFile> {
        [
            ("client", "/// Nobody says anything.\nstruct State;\nstruct State;\nenum StepOutcome {}\n"),
            ("server", "// Four plain words here\npub struct State;\npub struct TwoWords;\n/// ```\n/// x\n/// ```\n"),
        ]
        .map(|(krate, text)| SourceFile::new(krate, text))
        .into()
    }

    #[test]
    fn measures_match_counts_by_hand() {
        let files = files();
        assert_eq!(repeated_in_a_crate(&files), 2.0);
        assert_eq!(shared_percent(&files), 60.0);
        assert_eq!(one_word_percent(&files), 60.0);
        assert_eq!(per_thousand(&files, PRONOUNS), 125.0);
        assert_eq!(per_thousand(&files, SPEECH), 125.0);
        assert_eq!(facade_items(&files), 2.0);
        assert_eq!(doc_examples(&files), 1.0);
        assert_eq!(longest_file(&files), 6.0);
    }
}
