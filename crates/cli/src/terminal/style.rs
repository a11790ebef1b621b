use std::io::IsTerminal;

/// Whether words may be emphasised, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextStyle {
    colored: bool,
}

impl TextStyle {
    /// Plain text.
    pub(crate) const PLAIN: Self = Self { colored: false };

    /// Emphasis on a terminal that supports it, unless disabled.
    pub(crate) fn for_stream(stream: &impl IsTerminal) -> Self {
        Self { colored: stream.is_terminal() && wants_color(|name| std::env::var(name).ok()) }
    }

    /// Reports whether colours are wanted.
    pub(crate) fn is_colored(self) -> bool {
        self.colored
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.sgr("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.sgr("2", text)
    }

    pub(crate) fn success(self, text: &str) -> String {
        self.sgr("32", text)
    }

    pub(crate) fn warning(self, text: &str) -> String {
        self.sgr("33", text)
    }

    pub(crate) fn error(self, text: &str) -> String {
        self.sgr("31", text)
    }

    fn sgr(self, code: &str, text: &str) -> String {
        if self.colored && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Reads the environment: `NO_COLOR` (see no-color.org), and `TERM=dumb`.
fn wants_color(variable: impl Fn(&str) -> Option<String>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && variable("TERM").as_deref() != Some("dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_out_where_they_are_not_wanted() {
        for (name, value, wanted) in [
            ("NO_COLOR", "1", false),
            ("NO_COLOR", "", true),
            ("TERM", "dumb", false),
            ("TERM", "xterm-256color", true),
            ("LANG", "C", true),
        ] {
            let asked = |asked: &str| (asked == name).then(|| value.to_owned());
            assert_eq!(wants_color(asked), wanted, "{name}={value}");
        }
        assert_eq!(TextStyle::PLAIN.bold("x"), "x");
        assert_eq!(TextStyle { colored: true }.bold("x"), "\x1b[1mx\x1b[0m");
    }
}
