use std::io;

/// A user at a terminal, who reads output and types lines.
pub(crate) trait InteractiveTerminal {
    /// Prints text.
    fn print(&mut self, words: &str);

    /// Prompts for one line; nothing means end of input.
    ///
    /// # Errors
    /// The terminal is gone.
    fn read_line(&mut self, prompt: &str) -> io::Result<Option<String>>;
}

/// A scripted user for tests, which records what is shown.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct ScriptedTerminal {
    lines: std::collections::VecDeque<String>,
    pub(crate) seen: String,
}

#[cfg(test)]
impl ScriptedTerminal {
    pub(crate) fn new(lines: &[&str]) -> Self {
        Self { lines: lines.iter().map(ToString::to_string).collect(), seen: String::new() }
    }
}

#[cfg(test)]
impl InteractiveTerminal for ScriptedTerminal {
    fn print(&mut self, words: &str) {
        self.seen.push_str(words);
    }

    fn read_line(&mut self, prompt: &str) -> io::Result<Option<String>> {
        self.seen.push_str(prompt);
        let line = self.lines.pop_front();
        self.seen.push_str(line.as_deref().unwrap_or("^D"));
        self.seen.push('\n');
        Ok(line)
    }
}
