use std::path::PathBuf;

use super::script::Ran;
use crate::table::Table;

/// What is to be run, and where it is logged.
#[derive(Debug)]
pub(super) struct Rows {
    /// Only what has this text in its name.
    pub(super) only: String,
    pub(super) results: PathBuf,
}

/// One line of a table.
#[derive(Debug)]
pub(super) struct Row {
    name: String,
    cells: Vec<String>,
    is_sound: bool,
}

impl Rows {
    /// Returns the file for what is printed, unless the row is not wanted.
    pub(super) fn log_of(&self, place: &[&str]) -> Option<PathBuf> {
        let name = place.join("-");
        name.contains(&self.only).then(|| self.results.join(format!("{name}.log")))
    }
}

impl Row {
    /// Makes a row of what was run where, and says at once what is wrong.
    pub(super) fn new(place: &[&str], ran: &Ran) -> Self {
        let name = place.join("-");
        let words = if ran.is_sound { "is content" } else { "is NOT content" };
        let notes: String = ran.notes.iter().map(|note| format!("  {note}\n")).collect();
        print!("{name} {words}\n{notes}");
        let counts = [ran.summary.passed, ran.summary.failed, ran.summary.skipped];
        let cells = place.iter().map(ToString::to_string).chain(counts.map(|count| count.to_string()));
        Self { name, cells: cells.collect(), is_sound: ran.is_sound }
    }
}

/// Prints rows below a heading, and returns the names of those that are not content.
pub(super) fn print_table(heading: &[&str], rows: Vec<Row>) -> Vec<String> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut heading = heading.to_vec();
    heading.extend(["passed", "failed", "skipped"]);
    let mut table = Table::new(&heading);
    let mut bad = Vec::new();
    for row in rows {
        if !row.is_sound {
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
    fn a_row_is_wanted_by_any_part_of_its_name() {
        for (only, wanted) in [("", true), ("v2-http", true), ("auto", true), ("v2-stdio", false)] {
            let rows = Rows { only: only.to_owned(), results: PathBuf::from("r") };
            assert_eq!(rows.log_of(&["node-v2", "http", "auto"]).is_some(), wanted, "{only}");
        }
    }
}
