//! `cargo xtask ratchet`: how the code reads, in numbers that may get better and never worse.
//!
//! Everything is measured over text, with rules simple enough to check by hand, so that the numbers of one commit can be
//! compared with those of another. `xtask/ratchet.json` has the numbers that hold; `--save` writes today's. Counts hold
//! exactly, rates of words with a tolerance of three words.

mod measure;
mod result_types;
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use self::measure::CodeMeasure;
use self::source::SourceTree;
use crate::args::Args;
use crate::table::TextTable;
use crate::{TaskResult, root};

/// The numbers that hold, by the names of their measures.
type MeasuredNumbers = BTreeMap<String, f64>;

pub(crate) fn command(mut args: Args) -> TaskResult {
    let is_saved = args.flag("--save");
    args.finish()?;
    let tree = SourceTree::read(&root())?;
    let now = measured(&tree);
    if is_saved {
        let saved = to_record(&recorded().unwrap_or_default(), &now, &tree);
        fs::write(path(), serde_json::to_string_pretty(&saved)? + "\n")?;
    }
    let before = recorded()?;
    let mut table = TextTable::new(&["measure", "recorded", "now", "wanted"]);
    for measure in measure::ALL {
        let number =
            |numbers: &MeasuredNumbers| numbers.get(measure.name).map_or("–".to_owned(), ToString::to_string);
        table.row(vec![measure.name.to_owned(), number(&before), number(&now), measure.goal()]);
    }
    print!("{}", table.render());
    match worse(&before, &now, &tree).as_slice() {
        [] => Ok(()),
        found => Err(found.join("\n").into()),
    }
}

fn path() -> PathBuf {
    root().join("xtask").join("ratchet.json")
}

fn recorded() -> TaskResult<MeasuredNumbers> {
    Ok(serde_json::from_str(&fs::read_to_string(path())?)?)
}

fn measured(tree: &SourceTree) -> MeasuredNumbers {
    measure::ALL.iter().map(|measure| (measure.name.to_owned(), measure.measure(tree))).collect()
}

/// Returns the numbers to record: today's, and where today's is higher within the tolerance, the one before.
fn to_record(before: &MeasuredNumbers, now: &MeasuredNumbers, tree: &SourceTree) -> MeasuredNumbers {
    let mut saved = now.clone();
    for measure in measure::ALL {
        let tolerance = measure.tolerance(tree);
        if let (Some(before), Some(now)) = (before.get(measure.name), saved.get_mut(measure.name))
            && tolerance > 0.0
            && !measure.is_worse(*before, *now, tolerance)
        {
            *now = now.min(*before);
        }
    }
    saved
}

/// Returns a sentence for each number that is worse than the recorded one, with the places of words.
fn worse(before: &MeasuredNumbers, now: &MeasuredNumbers, tree: &SourceTree) -> Vec<String> {
    let of = |numbers: &MeasuredNumbers, measure: &CodeMeasure| numbers.get(measure.name).copied();
    let compare = |measure: &CodeMeasure| match (of(before, measure), of(now, measure)) {
        (Some(before), Some(now)) if measure.is_worse(before, now, measure.tolerance(tree)) => {
            let places = measure.places(tree).into_iter().map(|place| format!("\n  {place}"));
            Some(format!("{}: {now}, and it was {before}{}", measure.name, places.collect::<String>()))
        }
        (Some(_), Some(_)) => None,
        _ => Some(format!("{}: it is not in xtask/ratchet.json", measure.name)),
    };
    measure::ALL.iter().filter_map(compare).collect()
}

#[cfg(test)]
mod tests {
    use super::source::SourceFile;
    use super::*;

    #[test]
    fn no_number_is_worse_than_recorded() {
        let tree = SourceTree::read(&root()).unwrap();
        assert!(tree.product.len() > 100 && tree.tooling.len() > 100, "too few files were read");
        let found = worse(&recorded().unwrap(), &measured(&tree), &tree);
        assert!(found.is_empty(), "{}\n(if that is right: cargo xtask ratchet --save)", found.join("\n"));
    }

    #[test]
    fn worse_or_missing_number_is_named() {
        let measures = measure::ALL;
        let tree = sample_tree();
        let same: MeasuredNumbers = measures.iter().map(|measure| (measure.name.to_owned(), 0.1)).collect();
        assert!(worse(&same, &same, &tree).is_empty());
        for measure in measures {
            for (number, is_worse) in [(0.01, measure.is_better_high), (0.4, !measure.is_better_high)] {
                let mut now = same.clone();
                now.insert(measure.name.to_owned(), number);
                assert_eq!(!worse(&same, &now, &tree).is_empty(), is_worse, "{} {number}", measure.name);
            }
            let mut less = same.clone();
            less.remove(measure.name);
            assert_eq!(worse(&less, &same, &tree).len(), 1, "{}", measure.name);
        }
    }

    const RATE: &str = "says, told, asked, … per 1,000 words of comments";

    /// Makes a tree with 40,000 words in comments, so that a word is 0.025 of 1,000, and one `asked` among them.
    fn sample_tree() -> SourceTree {
        let text = "// plain\n".repeat(39_996) + "// The server asked twice.\n";
        let file = || SourceFile::new("client", "crates/client/src/a.rs", &text);
        SourceTree { product: vec![file()], tooling: vec![file()] }
    }

    #[test]
    fn worse_rate_is_reported_with_the_lines_to_reword() {
        let tree = sample_tree();
        let now = measured(&tree);
        let mut before = now.clone();
        before.insert(RATE.to_owned(), 0.0);
        assert!(worse(&before, &now, &tree).is_empty(), "one word is tolerated");
        let mut now = now;
        now.insert(RATE.to_owned(), 0.2);
        let expected = format!(
            "{RATE}: 0.2, and it was 0\n  crates/client/src/a.rs:39997: `asked` in: The server asked twice."
        );
        assert_eq!(worse(&before, &now, &tree), [expected]);
    }

    #[test]
    fn saving_records_no_rate_that_is_higher_within_the_tolerance() {
        let tree = sample_tree();
        let numbers = |rate: f64, files: f64| {
            let mut numbers = measured(&tree);
            numbers.insert(RATE.to_owned(), rate);
            numbers.insert("lines of the longest file".to_owned(), files);
            numbers
        };
        for (before, now, expected) in [(0.03, 0.05, 0.03), (0.03, 0.01, 0.01), (0.03, 0.3, 0.3)] {
            let saved = to_record(&numbers(before, 478.0), &numbers(now, 480.0), &tree);
            assert_eq!((saved[RATE], saved["lines of the longest file"]), (expected, 480.0), "{now}");
        }
        assert_eq!(to_record(&MeasuredNumbers::new(), &numbers(0.05, 1.0), &tree)[RATE], 0.05);
    }
}
