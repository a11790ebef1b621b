//! The tables that tests of the hub measure.

use std::fs;

use serde_json::Value;

use super::cell::FeatureCell;
use super::grid::FeatureGrid;
use crate::{TaskResult, fixture, run};

/// Runs the test that measures a table, and reads the rows that it wrote.
pub(super) fn measure(table: &str) -> TaskResult<Vec<FeatureGrid>> {
    let folder = fixture::results_folder(&format!("matrix-{table}"))?;
    let arguments = ["test", "--quiet", "--package", "trunkline-hub", "--test", "matrix", table];
    run::run(run::cargo().args(arguments).env("MATRIX_ROWS", &folder))?;
    read(&fs::read_to_string(folder.join(table).with_extension("jsonl"))?)
}

/// Reads rows, each of which names the two peers.
fn read(rows: &str) -> TaskResult<Vec<FeatureGrid>> {
    let mut grids: Vec<FeatureGrid> = Vec::new();
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line)?;
        let member = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        let heading = match (member("client era"), member("server era")) {
            ("", _) | (_, "") => String::new(),
            (client, server) => format!("A {client} client and a {server} server"),
        };
        if !grids.iter().any(|grid| grid.heading == heading) {
            grids.push(FeatureGrid::new(heading.clone()));
        }
        let cell = FeatureCell::read(member("cell")).ok_or_else(|| format!("this cell failed: {line}"))?;
        if let Some(grid) = grids.iter_mut().find(|grid| grid.heading == heading) {
            grid.put(member("feature"), member("client"), member("server"), cell);
        }
    }
    if grids.is_empty() { Err("nothing was measured".into()) } else { Ok(grids) }
}

#[cfg(test)]
mod checks {
    use super::*;

    const ROW: &str = r#"{"client era":"legacy","server era":"modern","client":"stdio","server":"ws","feature":"list","cell":"CELL"}"#;

    #[test]
    fn rows_of_one_pair_of_eras_are_one_grid() {
        let other = ROW.replace("legacy", "modern");
        let rows = [ROW, &ROW.replace("stdio", "http"), &other].join("\n").replace("CELL", "pass");
        let grids = read(&rows).unwrap();
        let headings: Vec<_> = grids.iter().map(|grid| grid.heading.as_str()).collect();
        assert_eq!(headings, ["A legacy client and a modern server", "A modern client and a modern server"]);
    }

    #[test]
    fn failed_row_and_file_without_rows_are_errors() {
        assert!(read(&ROW.replace("CELL", "FAIL")).is_err());
        assert!(read("").is_err());
    }
}
