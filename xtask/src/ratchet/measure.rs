//! What is measured.

use std::collections::HashMap;

use super::result_types;
use super::source::{SourceFile, SourceTree};

/// One number.
pub(super) struct CodeMeasure {
    pub(super) name: &'static str,
    kind: MeasureKind,
    part: SourcePart,
    pub(super) is_better_high: bool,
    /// Where it should get to.
    goal: Option<&'static str>,
}

/// What is counted, and how it is compared.
#[derive(Clone, Copy)]
enum MeasureKind {
    /// A number that is compared exactly.
    Exact(fn(&[SourceFile]) -> f64),
    /// How many of 1,000 words of comments are one of these. The rate stays under the limit, and within
    /// [`TOLERATED_WORDS`] of the recorded one.
    WordRate { words: &'static [&'static str], limit: f64 },
}

/// How many words a rate may be above the recorded one.
///
/// A rate also moves when comments without such a word are removed, and a word can be right where it stands, as in a
/// quotation: a hundredth more says nothing about the language of a change. A change that goes back to the old
/// language exceeds this with its first paragraph, since it had 15 of these words per 1,000. The tolerance does not add
/// up: it counts from the recorded number, and `--save` records no number that is higher within it.
const TOLERATED_WORDS: f64 = 3.0;

/// The most places that are listed for a rate.
const MAX_LISTED_PLACES: usize = 40;

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
        let kind = MeasureKind::Exact(count);
        Self { name, kind, part: SourcePart::Product, is_better_high: false, goal }
    }

    const fn words(name: &'static str, words: &'static [&'static str], limit: f64) -> Self {
        let kind = MeasureKind::WordRate { words, limit };
        Self { name, kind, part: SourcePart::Product, is_better_high: false, goal: None }
    }

    const fn high(name: &'static str, count: fn(&[SourceFile]) -> f64) -> Self {
        let kind = MeasureKind::Exact(count);
        Self { name, kind, part: SourcePart::Product, is_better_high: true, goal: None }
    }

    const fn over_tooling(self) -> Self {
        Self { part: SourcePart::Tooling, ..self }
    }

    fn files<'a>(&self, tree: &'a SourceTree) -> &'a [SourceFile] {
        match self.part {
            SourcePart::Product => &tree.product,
            SourcePart::Tooling => &tree.tooling,
        }
    }

    pub(super) fn measure(&self, tree: &SourceTree) -> f64 {
        match self.kind {
            MeasureKind::Exact(count) => count(self.files(tree)),
            MeasureKind::WordRate { words, .. } => per_thousand(self.files(tree), words),
        }
    }

    /// Returns where the number should get to, for display.
    pub(super) fn goal(&self) -> String {
        match self.kind {
            MeasureKind::Exact(_) => self.goal.unwrap_or_default().to_owned(),
            MeasureKind::WordRate { limit, .. } => format!("under {limit}"),
        }
    }

    /// Returns by how much the number may be above the recorded one.
    pub(super) fn tolerance(&self, tree: &SourceTree) -> f64 {
        match self.kind {
            MeasureKind::Exact(_) => 0.0,
            // Numbers have two digits.
            MeasureKind::WordRate { .. } => {
                let all = float(all_words(self.files(tree)).count()).max(1.0);
                (1000.0 * TOLERATED_WORDS / all * 100.0).ceil() / 100.0
            }
        }
    }

    pub(super) fn is_worse(&self, before: f64, now: f64, tolerance: f64) -> bool {
        let is_over = matches!(self.kind, MeasureKind::WordRate { limit, .. } if now >= limit);
        // Half a digit, since sums of numbers with two digits are not exact.
        let most = before + tolerance + if tolerance > 0.0 { 0.005 } else { 0.0 };
        is_over || if self.is_better_high { now < before } else { now > most }
    }

    /// Returns a line for each word of a rate: its file, its line, and the text there.
    pub(super) fn places(&self, tree: &SourceTree) -> Vec<String> {
        let MeasureKind::WordRate { words, .. } = self.kind else { return Vec::new() };
        let found = all_words(self.files(tree)).filter(|found| found.is_one_of(words));
        let mut lines: Vec<_> = found.map(|found| found.place()).collect();
        if lines.len() > MAX_LISTED_PLACES {
            let more = lines.len() - MAX_LISTED_PLACES;
            lines.truncate(MAX_LISTED_PLACES);
            lines.push(format!("and {more} more"));
        }
        lines
    }
}

/// A word of a comment.
struct CommentWord<'a> {
    file: &'a SourceFile,
    line: usize,
    comment: &'a str,
    word: &'a str,
}

impl CommentWord<'_> {
    fn is_one_of(&self, words: &[&str]) -> bool {
        words.contains(&self.word.to_lowercase().as_str())
    }

    fn place(&self) -> String {
        format!("{}:{}: `{}` in: {}", self.file.path, self.line, self.word, self.comment.trim())
    }
}

/// Returns the words of all comments.
fn all_words(files: &[SourceFile]) -> impl Iterator<Item = CommentWord<'_>> {
    files.iter().flat_map(|file| {
        file.numbered_comments().flat_map(move |(line, comment)| {
            let words = comment.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
            words.map(move |word| CommentWord { file, line, comment, word })
        })
    })
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
    CodeMeasure::words("whoever, nobody, … per 1,000 words of comments", PRONOUNS, 0.5),
    CodeMeasure::words("says, told, asked, … per 1,000 words of comments", SPEECH, 1.5),
    CodeMeasure::words("whoever, nobody, … in tests and tools", PRONOUNS, 0.5).over_tooling(),
    CodeMeasure::words("says, told, asked, … in tests and tools", SPEECH, 1.5).over_tooling(),
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
    for word in all_words(files) {
        all += 1;
        found += usize::from(word.is_one_of(words));
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
        .map(|(krate, text)| SourceFile::new(krate, &format!("{krate}.rs"), text))
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

    /// Makes a tree with 10,000 words in comments, some of which are `asked`.
    fn tree_with(asked: usize) -> SourceTree {
        let comment = |count: usize, word: &str| format!("// {word}\n").repeat(count);
        let text = comment(10_000 - asked, "plain") + &comment(asked, "asked");
        let product = vec![SourceFile::new("client", "crates/client/src/a.rs", &text)];
        SourceTree { product, tooling: Vec::new() }
    }

    #[test]
    fn rate_is_worse_by_more_than_three_words_or_over_its_limit() {
        let rate = CodeMeasure::words("rate", SPEECH, 1.5);
        let is_worse = |before: usize, now: usize| {
            let now = tree_with(now);
            rate.is_worse(rate.measure(&tree_with(before)), rate.measure(&now), rate.tolerance(&now))
        };
        for (before, now, expected) in [
            (2, 1, false),
            (2, 2, false),
            (2, 5, false),
            (2, 6, true),
            (0, 3, false),
            (0, 4, true),
            // The limit holds without a tolerance.
            (14, 14, false),
            (14, 15, true),
        ] {
            assert_eq!(is_worse(before, now), expected, "{before} words, then {now}");
        }
        let count = CodeMeasure::low("count", None, longest_file);
        assert_eq!(count.tolerance(&tree_with(0)), 0.0);
        assert!(count.is_worse(478.0, 479.0, 0.0) && !count.is_worse(478.0, 478.0, 0.0));
    }

    #[test]
    fn places_of_a_rate_are_listed_up_to_a_bound() {
        let rate = CodeMeasure::words("rate", SPEECH, 1.5);
        let files = files();
        let tree = SourceTree { product: files, tooling: Vec::new() };
        assert_eq!(rate.places(&tree), ["client.rs:1: `says` in: Nobody says anything."]);
        assert!(rate.over_tooling().places(&tree).is_empty());
        let many = CodeMeasure::words("rate", SPEECH, 1.5).places(&tree_with(MAX_LISTED_PLACES + 2));
        assert_eq!(many.len(), MAX_LISTED_PLACES + 1);
        assert_eq!(many.last().unwrap(), "and 2 more");
    }
}
