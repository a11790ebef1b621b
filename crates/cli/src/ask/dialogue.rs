use std::io;

/// Somebody at a terminal: reads what we say, and types lines.
pub(crate) trait Dialogue {
    /// Says something.
    fn say(&mut self, words: &str);

    /// Asks for one line; nothing means that the input has ended.
    ///
    /// # Errors
    /// The terminal is gone.
    fn ask(&mut self, prompt: &str) -> io::Result<Option<String>>;
}

/// A person who types what a test says, and notes what is shown.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    lines: std::collections::VecDeque<String>,
    pub(crate) seen: String,
}

#[cfg(test)]
impl Scripted {
    pub(crate) fn new(lines: &[&str]) -> Self {
        Self { lines: lines.iter().map(ToString::to_string).collect(), seen: String::new() }
    }
}

#[cfg(test)]
impl Dialogue for Scripted {
    fn say(&mut self, words: &str) {
        self.seen.push_str(words);
    }

    fn ask(&mut self, prompt: &str) -> io::Result<Option<String>> {
        self.seen.push_str(prompt);
        let line = self.lines.pop_front();
        self.seen.push_str(line.as_deref().unwrap_or("^D"));
        self.seen.push('\n');
        Ok(line)
    }
}
