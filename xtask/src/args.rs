//! Reads the few options that commands have, and refuses the rest.

use crate::TaskResult;

/// The words after the command's name, taken out one by one as options claim them.
#[derive(Debug)]
pub(crate) struct Args {
    words: Vec<String>,
    after_dashes: Vec<String>,
}

impl Args {
    pub(crate) fn new(words: impl Iterator<Item = String>) -> Self {
        let mut words: Vec<String> = words.collect();
        let mut after_dashes = Vec::new();
        if let Some(dashes) = words.iter().position(|word| word == "--") {
            after_dashes = words.split_off(dashes + 1);
            words.pop();
        }
        Self { words, after_dashes }
    }

    /// Takes every word after a lone `--`.
    pub(crate) fn after_dashes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.after_dashes)
    }

    /// Takes `name` if it is there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let found = self.words.iter().position(|word| word == name);
        found.map(|at| self.words.remove(at)).is_some()
    }

    /// Takes `name` and the word after it, if they are there.
    pub(crate) fn value(&mut self, name: &str) -> TaskResult<Option<String>> {
        let Some(at) = self.words.iter().position(|word| word == name) else {
            return Ok(None);
        };
        self.words.remove(at);
        if at == self.words.len() {
            return Err(format!("{name} needs a value").into());
        }
        Ok(Some(self.words.remove(at)))
    }

    /// Takes `name` and its value as often as they are there.
    pub(crate) fn values(&mut self, name: &str) -> TaskResult<Vec<String>> {
        let mut found = Vec::new();
        while let Some(value) = self.value(name)? {
            found.push(value);
        }
        Ok(found)
    }

    /// Takes the first word if it is one of `choices`.
    pub(crate) fn choice(&mut self, choices: &[&str]) -> Option<String> {
        let first = self.words.first()?;
        choices.contains(&first.as_str()).then(|| self.words.remove(0))
    }

    /// Takes the first word if it is a number.
    pub(crate) fn number(&mut self) -> Option<usize> {
        let number = self.words.first()?.replace('_', "").parse().ok()?;
        self.words.remove(0);
        Some(number)
    }

    /// Refuses whatever no option has claimed.
    pub(crate) fn finish(self) -> TaskResult {
        match self.words.iter().chain(&self.after_dashes).next() {
            None => Ok(()),
            Some(word) => Err(format!("`{word}` means nothing here").into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        Args::new(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_taken_wherever_they_stand() {
        let mut args = args("server --quick --skip fmt --skip docs --url U -- run --quick");
        assert_eq!(args.choice(&["server", "client"]).as_deref(), Some("server"));
        assert_eq!(args.value("--url").unwrap().as_deref(), Some("U"));
        assert_eq!(args.values("--skip").unwrap(), ["fmt", "docs"]);
        assert!(args.flag("--quick"));
        assert!(!args.flag("--quick"), "the one after the dashes belongs to someone else");
        assert_eq!(args.after_dashes(), ["run", "--quick"]);
        args.finish().unwrap();
    }

    #[test]
    fn numbers_may_have_marks_between_their_digits() {
        let mut args = args("1_000_000 -5");
        assert_eq!(args.number(), Some(1_000_000));
        assert_eq!(args.number(), None);
        assert!(args.finish().is_err());
    }

    #[test]
    fn unknown_arguments_are_refused() {
        for line in ["--fast", "fast", "-- fast"] {
            assert!(args(line).finish().is_err(), "{line}");
        }
        assert!(args("--url").value("--url").is_err());
    }
}
