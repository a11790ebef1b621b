//! A table of features by peers, each cell of it a row of marks: one for each peer at the other end.

use super::cell::FeatureCell;
use crate::TaskResult;

/// Everything that was measured of one heading.
#[derive(Debug)]
pub(super) struct FeatureGrid {
    /// The heading, if it is one of several.
    pub(super) heading: String,
    features: Vec<String>,
    columns: Vec<String>,
    marks: Vec<String>,
    cells: Vec<((usize, usize, usize), FeatureCell)>,
}

impl FeatureGrid {
    /// Makes an empty grid.
    pub(super) fn new(heading: impl Into<String>) -> Self {
        let (features, columns, marks) = (Vec::new(), Vec::new(), Vec::new());
        Self { heading: heading.into(), features, columns, marks, cells: Vec::new() }
    }

    /// Adds a cell; places are in the order in which they first come.
    pub(super) fn put(&mut self, feature: &str, column: &str, mark: &str, cell: FeatureCell) {
        let place = (
            place_of(&mut self.features, feature),
            place_of(&mut self.columns, column),
            place_of(&mut self.marks, mark),
        );
        self.cells.push((place, cell));
    }

    /// Writes the grid as Markdown; sentences are numbered in a list that all grids of a table share.
    ///
    /// # Errors
    /// A cell is missing, or there are two for one place.
    pub(super) fn write(&self, sentences: &mut Vec<String>) -> TaskResult<String> {
        let mut text = String::new();
        text.push_str(&line(std::iter::once("feature".to_owned()).chain(self.columns.iter().cloned())));
        text.push_str(&line(std::iter::repeat_n("---".to_owned(), self.columns.len() + 1)));
        for (row, feature) in self.features.iter().enumerate() {
            let mut cells = vec![feature.clone()];
            for column in 0..self.columns.len() {
                let marks = (0..self.marks.len()).map(|mark| self.mark((row, column, mark), sentences));
                cells.push(marks.collect::<TaskResult<Vec<_>>>()?.join(" "));
            }
            text.push_str(&line(cells.into_iter()));
        }
        Ok(text)
    }

    fn mark(&self, place: (usize, usize, usize), sentences: &mut Vec<String>) -> TaskResult<String> {
        let mut found = self.cells.iter().filter(|(at, _)| *at == place).map(|(_, cell)| cell);
        match (found.next(), found.next()) {
            (Some(FeatureCell::Pass), None) => Ok("✓".to_owned()),
            (Some(FeatureCell::Cannot(sentence)), None) => {
                Ok((place_of(sentences, sentence) + 1).to_string())
            }
            (found, _) => {
                let (row, column, mark) = place;
                let name = |names: &[String], at: usize| names.get(at).cloned().unwrap_or_default();
                let at = [name(&self.features, row), name(&self.columns, column), name(&self.marks, mark)];
                let what = if found.is_some() { "two cells" } else { "no cell" };
                Err(format!("{}: there is {what} at {}", self.heading, at.join(", ")).into())
            }
        }
    }
}

/// Finds a name, or adds it.
fn place_of(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(cells: &[(&str, &str, &str)]) -> FeatureGrid {
        let mut grid = FeatureGrid::new("");
        for (column, mark, cell) in cells {
            grid.put("list", column, mark, FeatureCell::read(cell).unwrap());
        }
        grid
    }

    #[test]
    fn marks_stand_side_by_side_and_sentences_are_counted_once() {
        let cells = [
            ("a", "x", "pass"),
            ("a", "y", "a has no y"),
            ("b", "x", "b has no x"),
            ("b", "y", "a has no y"),
        ];
        let mut sentences = Vec::new();
        let text = grid(&cells).write(&mut sentences).unwrap();
        assert_eq!(text, "| feature | a | b |\n| --- | --- | --- |\n| list | ✓ 1 | 2 1 |\n");
        assert_eq!(sentences, ["a has no y", "b has no x"]);
    }

    #[test]
    fn missing_or_duplicate_cell_is_named() {
        for (cells, what) in [
            (&[("a", "x", "pass"), ("b", "y", "pass")][..], "no cell at list, a, y"),
            (&[("a", "x", "pass"), ("a", "x", "pass")], "two cells at list, a, x"),
        ] {
            let error = grid(cells).write(&mut Vec::new()).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn failed_cell_has_no_result() {
        assert_eq!(FeatureCell::read("FAIL"), None);
        assert_eq!(FeatureCell::read("pass"), Some(FeatureCell::Pass));
    }
}
