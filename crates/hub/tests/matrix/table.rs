use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The rows of one table, and what is wrong with them.
pub(crate) struct MatrixTable {
    name: &'static str,
    rows: String,
    failures: String,
}

impl MatrixTable {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, rows: String::new(), failures: String::new() }
    }

    /// Adds what came of a feature at a place.
    pub(crate) fn row<const N: usize>(
        &mut self,
        place: [(&str, &str); N],
        feature: &str,
        outcome: Result<String, String>,
    ) {
        let cell = outcome.as_deref().unwrap_or("FAIL");
        let members = place.into_iter().chain([("feature", feature), ("cell", cell)]);
        let row: Map<_, _> = members.map(|(key, value)| (key.to_owned(), Value::from(value))).collect();
        let _ = writeln!(self.rows, "{}", Value::Object(row));
        if let Err(problem) = outcome {
            let _ = writeln!(self.failures, "{}: {feature}: {problem}", place.map(|(_, at)| at).join(", "));
        }
    }

    /// Writes the rows where they are wanted, and fails if a cell did.
    pub(crate) fn close(self) {
        if let Some(folder) = std::env::var_os("MATRIX_ROWS") {
            let file = std::path::Path::new(&folder).join(self.name).with_extension("jsonl");
            std::fs::write(file, &self.rows).unwrap();
        }
        assert!(self.failures.is_empty(), "{}", self.failures);
    }
}
