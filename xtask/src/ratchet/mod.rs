//! `cargo xtask ratchet`: how the code reads, in numbers that may get better and never worse.
//!
//! Everything is measured over text, with rules simple enough to check by hand, so that the numbers of one commit can be
//! compared with those of another. `xtask/ratchet.json` has the numbers that hold; `--save` writes today's.

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
    let now = measured(&SourceTree::read(&root())?);
    if is_saved {
        fs::write(path(), serde_json::to_string_pretty(&now)? + "\n")?;
    }
    let before = recorded()?;
    let mut table = TextTable::new(&["measure", "recorded", "now", "wanted"]);
    for measure in measure::ALL {
        let number =
            |numbers: &MeasuredNumbers| numbers.get(measure.name).map_or("–".to_owned(), ToString::to_string);
        let wanted = measure.goal.unwrap_or_default().to_owned();
        table.row(vec![measure.name.to_owned(), number(&before), number(&now), wanted]);
    }
    print!("{}", table.render());
    match worse(&before, &now).as_slice() {
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

/// Returns a sentence for each number that is worse than the recorded one.
fn worse(before: &MeasuredNumbers, now: &MeasuredNumbers) -> Vec<String> {
    let of = |numbers: &MeasuredNumbers, measure: &CodeMeasure| numbers.get(measure.name).copied();
    let compare = |measure: &CodeMeasure| match (of(before, measure), of(now, measure)) {
        (Some(before), Some(now)) if measure.is_worse(before, now) => {
            Some(format!("{}: {now}, and it was {before}", measure.name))
        }
        (Some(_), Some(_)) => None,
        _ => Some(format!("{}: it is not in xtask/ratchet.json", measure.name)),
    };
    measure::ALL.iter().filter_map(compare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_worse_than_recorded() {
        let tree = SourceTree::read(&root()).unwrap();
        assert!(tree.product.len() > 100 && tree.tooling.len() > 100, "too few files were read");
        let found = worse(&recorded().unwrap(), &measured(&tree));
        assert!(found.is_empty(), "{}\n(if that is right: cargo xtask ratchet --save)", found.join("\n"));
    }

    #[test]
    fn worse_or_missing_number_is_named() {
        let measures = measure::ALL;
        let same: MeasuredNumbers = measures.iter().map(|measure| (measure.name.to_owned(), 5.0)).collect();
        assert!(worse(&same, &same).is_empty());
        for measure in measures {
            for (number, is_worse) in [(4.0, measure.is_better_high), (6.0, !measure.is_better_high)] {
                let mut now = same.clone();
                now.insert(measure.name.to_owned(), number);
                assert_eq!(!worse(&same, &now).is_empty(), is_worse, "{} {number}", measure.name);
            }
            let mut less = same.clone();
            less.remove(measure.name);
            assert_eq!(worse(&less, &same).len(), 1, "{}", measure.name);
        }
    }
}
