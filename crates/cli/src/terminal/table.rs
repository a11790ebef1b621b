use super::width::{display_width, pad, truncate_to_width};

/// No column of a table is made narrower than this in order to fit it.
const MIN_COLUMN_WIDTH: usize = 8;

const GAP: &str = "  ";

/// Lays rows out in columns: the head, then the rows, cells cut where the table would be too wide.
///
/// Cells must be visible lines. The last column is not filled up, so that no line ends in spaces.
pub(crate) fn table(head: &[String], rows: &[Vec<String>], columns: usize) -> String {
    let (mut widths, surplus) = column_widths(head, rows, columns);
    shrink_columns(&mut widths, surplus);
    render_rows(head, rows, &widths)
}

/// Lays rows out as [`table`] does, but cuts the first column, by which a row is known, only if all others have given what
/// they can.
pub(crate) fn table_keeping_first_column(head: &[String], rows: &[Vec<String>], columns: usize) -> String {
    let (mut widths, mut surplus) = column_widths(head, rows, columns);
    if let [_, others @ ..] = widths.as_mut_slice() {
        surplus = shrink_columns(others, surplus);
    }
    shrink_columns(&mut widths, surplus);
    render_rows(head, rows, &widths)
}

fn render_rows(head: &[String], rows: &[Vec<String>], widths: &[usize]) -> String {
    let mut text = String::new();
    for row in std::iter::once(head).chain(rows.iter().map(Vec::as_slice)) {
        let cells = widths.iter().enumerate().map(|(at, width)| {
            let cell = row.get(at).map_or("", String::as_str);
            pad(&truncate_to_width(cell, *width), *width)
        });
        let line = cells.collect::<Vec<_>>().join(GAP);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns how wide each column would be, and by how much they are too wide together.
fn column_widths(head: &[String], rows: &[Vec<String>], columns: usize) -> (Vec<usize>, usize) {
    let mut widths: Vec<usize> = head.iter().map(|cell| display_width(cell)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(display_width(cell));
        }
    }
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    let surplus = (widths.iter().sum::<usize>() + gaps).saturating_sub(columns);
    (widths, surplus)
}

/// Takes what is too much from the widest columns, and returns what none could give.
fn shrink_columns(widths: &mut [usize], mut surplus: usize) -> usize {
    while surplus > 0 {
        let next = widths.iter().copied().filter(|width| *width > MIN_COLUMN_WIDTH).max();
        let Some(widest) = next else { break };
        // The next widest is how far the widest may fall in one step.
        let below =
            widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(0).max(MIN_COLUMN_WIDTH);
        let count = widths.iter().filter(|width| **width == widest).count();
        let step = surplus.div_ceil(count).min(widest - below).max(1);
        for width in widths.iter_mut().filter(|width| **width == widest) {
            let given = step.min(surplus);
            *width -= given;
            surplus -= given;
        }
    }
    surplus
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let text = table(&row(&["name", "n"]), &[row(&["日本", "1"]), row(&["a", ""])], 80);
        assert_eq!(text, "name  n\n日本  1\na\n");
    }

    #[test]
    fn widest_columns_shrink_in_wide_tables() {
        let long = "x".repeat(50);
        for columns in [22, 25, 40, 60] {
            let text = table(&row(&["a", "b", "c"]), &[row(&["id", &long, &long])], columns);
            for line in text.lines() {
                assert!(display_width(line) <= columns, "{columns}: {line}");
            }
            assert!(text.contains("\nid  xxx") && text.contains('…'), "{text}");
        }
    }

    #[test]
    fn first_column_is_truncated_last() {
        let long = "x".repeat(40);
        let rows = [row(&["demo://resource/static/architecture.md", &long, &long])];
        let text = table_keeping_first_column(&row(&["URI", "b", "c"]), &rows, 60);
        assert!(text.contains("\ndemo://resource/static/architecture.md  xxx"), "{text}");
        assert!(text.lines().all(|line| display_width(line) <= 60), "{text}");
        let text = table_keeping_first_column(&row(&["URI", "b", "c"]), &rows, 40);
        assert!(text.lines().all(|line| display_width(line) <= 40), "{text}");
    }

    #[test]
    fn table_that_never_fits_still_terminates() {
        let cells: Vec<&str> = vec!["0123456789"; 40];
        let text = table_keeping_first_column(&row(&cells), &[row(&cells)], 20);
        assert_eq!(text.lines().count(), 2);
    }
}
