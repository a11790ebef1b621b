use ratatui::style::{Color, Modifier, Style};

/// The styles of the screen. Without colours there is only bold, dim and reversed text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    is_colored: bool,
}

impl Palette {
    pub(crate) fn new(is_colored: bool) -> Self {
        Self { is_colored }
    }

    fn color(self, color: Color) -> Style {
        if self.is_colored { Style::new().fg(color) } else { Style::new() }
    }

    #[expect(clippy::unused_self, reason = "all styles are made in the same way")]
    pub(super) fn title(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn head(self) -> Style {
        self.color(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    #[expect(clippy::unused_self, reason = "all styles are made in the same way")]
    pub(super) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    #[expect(clippy::unused_self, reason = "all styles are made in the same way")]
    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn plot(self) -> Style {
        self.color(Color::Green)
    }

    pub(super) fn good(self) -> Style {
        self.color(Color::Green)
    }

    pub(super) fn warning(self) -> Style {
        self.color(Color::Yellow)
    }

    pub(super) fn bad(self) -> Style {
        self.color(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Returns the style of a server's state.
    pub(super) fn state(self, state: &str) -> Style {
        match state {
            "ready" => self.good(),
            "failed" => self.bad(),
            "needs-auth" | "connecting" => self.warning(),
            _ => self.dim(),
        }
    }

    /// Returns the style of a call's outcome.
    pub(super) fn status(self, status: &str) -> Style {
        match status {
            "ok" => self.good(),
            "error" | "tool_error" => self.bad(),
            "running" | "asking" | "input_required" => self.warning(),
            _ => self.dim(),
        }
    }
}
