use std::path::PathBuf;

use super::script::ScriptRun;
use crate::table::TextTable;

/// What is to be run, and where it is logged.
#[derive(Debug)]
pub(super) struct RunSelection {
    /// Only what has this text in its name.
    pub(super) only: String,
    pub(super) results: PathBuf,
}

/// One line of a table.
#[derive(Debug)]
pub(super) struct ResultRow {
    name: String,
    cells: Vec<String>,
    passed: bool,
}

impl RunSelection {
    /// Returns the file for what is printed, unless the row is not wanted.
    pub(super) fn log_of(&self, place: &[&str]) -> Option<PathBuf> {
        let name = place.join("-");
        name.contains(&self.only).then(|| self.results.join(format!("{name}.log")))
    }
}

impl ResultRow {
    /// Makes a row of a run, and prints its failures at once.
    pub(super) fn new(place: &[&str], ran: &ScriptRun) -> Self {
        let name = place.join("-");
        let words = if ran.passed { "is content" } else { "is NOT content" };
        let notes: String = ran.notes.iter().map(|note| format!("  {note}\n")).collect();
        print!("{name} {words}\n{notes}");
        let counts = [ran.summary.passed, ran.summary.failed, ran.summary.skipped];
        let cells = place.iter().map(ToString::to_string).chain(counts.map(|count| count.to_string()));
        Self { name, cells: cells.collect(), passed: ran.passed }
    }
}

/// Prints rows below a heading, and returns the names of those that are not content.
pub(super) fn print_table(heading: &[&str], rows: Vec<ResultRow>) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut heading = heading.to_vec();
    heading.extend(["passed", "failed", "skipped"]);
    let mut table = TextTable::new(&heading);
    let mut bad = Vec::new();
    for row in rows {
        if !row.passed {
            bad.push(row.name);
        }
        table.row(row.cells);
    }
    print!("\n{}", table.render());
    bad
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_is_selected_by_any_part_of_its_name() {
        for (only, wanted) in [("", true), ("v2-http", true), ("auto", true), ("v2-stdio", false)] {
            let rows = RunSelection { only: only.to_owned(), results: PathBuf::from("r") };
            assert_eq!(rows.log_of(&["node-v2", "http", "auto"]).is_some(), wanted, "{only}");
        }
    }
}
