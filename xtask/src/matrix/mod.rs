//! `cargo xtask matrix`: measures what the bridge carries, and writes it down in `docs/matrix.md`.

mod cell;
mod grid;
mod log;
mod page;
mod peers;
mod tests;

use std::fs;

use self::grid::FeatureGrid;
use self::page::MatrixPage;
use crate::args::Args;
use crate::{TaskResult, root};

/// Where the tables are written down.
const PAGE: &str = "docs/matrix.md";

type TableMeasure = fn() -> TaskResult<Vec<FeatureGrid>>;

/// What each table is about, and how it is measured.
const TABLES: &[(&str, TableMeasure)] = &[
    ("revisions", || tests::measure("revisions")),
    ("transports", || tests::measure("transports")),
    ("peers", peers::measure),
];

pub(crate) fn command(mut args: Args) -> TaskResult {
    let chosen = choose(args.value("--tables")?.as_deref())?;
    let is_check = args.flag("--check");
    args.finish()?;
    let path = root().join(PAGE);
    let before = fs::read_to_string(&path).unwrap_or_default();
    let mut page = MatrixPage::read(&before);
    for (name, measure) in TABLES.iter().filter(|(name, _)| chosen.contains(name)) {
        println!("measuring the {name}");
        page.put(name, &measure()?)?;
    }
    let after = page.write();
    if after == before {
        println!("{PAGE} says what was measured.");
        return Ok(());
    }
    if is_check {
        return Err(format!("{PAGE} does not say what was measured; run `cargo xtask matrix`").into());
    }
    fs::write(path, after)?;
    println!("{PAGE} is written anew.");
    Ok(())
}

/// Gives the names of the tables that are meant by their numbers, which count from one; all if none is named.
fn choose(numbers: Option<&str>) -> TaskResult<Vec<&'static str>> {
    let Some(numbers) = numbers else {
        return Ok(TABLES.iter().map(|(name, _)| *name).collect());
    };
    let name = |number: &str| {
        let at = number.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let table = at.and_then(|at| TABLES.get(at));
        table
            .map(|(name, _)| *name)
            .ok_or_else(|| format!("there is no table `{number}`; they count from 1 to {}", TABLES.len()))
    };
    Ok(numbers.split(',').map(name).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod choices {
    use super::*;

    #[test]
    fn tables_are_chosen_by_their_numbers() {
        assert_eq!(choose(None).unwrap().len(), TABLES.len());
        assert_eq!(choose(Some("2")).unwrap(), ["transports"]);
        assert_eq!(choose(Some("1, 3")).unwrap(), ["revisions", "peers"]);
        for wrong in ["0", "9", "x", ""] {
            assert!(choose(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
