//! What a terminal shows, for programs that draw a full screen.

/// The characters of a screen, from what a program has written to it. It knows what such programs write: text, cursor
/// positions and the clearing of the screen; colours are left out.
#[derive(Debug, Default)]
pub(crate) struct ScreenGrid {
    rows: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl ScreenGrid {
    /// Returns the screen after a whole output.
    pub(crate) fn of(output: &str) -> String {
        let mut grid = Self::default();
        let mut rest = output.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\u{1b}' if rest.next_if_eq(&'[').is_some() => {
                    let mut parameters = String::new();
                    let end = loop {
                        match rest.next() {
                            Some(c) if c.is_ascii_alphabetic() => break Some(c),
                            Some(c) => parameters.push(c),
                            None => break None,
                        }
                    };
                    grid.control(&parameters, end);
                }
                '\r' => grid.column = 0,
                '\n' => grid.row += 1,
                c if c.is_control() => {}
                c => grid.put(c),
            }
        }
        let lines = grid.rows.iter().map(|row| row.iter().collect::<String>().trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    fn control(&mut self, parameters: &str, end: Option<char>) {
        match end {
            Some('H') => {
                let mut numbers = parameters.split(';').map(|number| number.parse::<usize>().unwrap_or(1));
                self.row = numbers.next().unwrap_or(1) - 1;
                self.column = numbers.next().unwrap_or(1) - 1;
            }
            Some('J') => self.rows.clear(),
            _ => {}
        }
    }

    fn put(&mut self, c: char) {
        if self.rows.len() <= self.row {
            self.rows.resize(self.row + 1, Vec::new());
        }
        let row = &mut self.rows[self.row];
        if row.len() <= self.column {
            row.resize(self.column + 1, ' ');
        }
        row[self.column] = c;
        self.column += 1;
    }
}
