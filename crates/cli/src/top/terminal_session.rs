use std::io::{self, Stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Whether the terminal is taken, so that it is restored once.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, taken over for a full screen. It is restored on drop and on a panic.
pub(crate) struct TerminalSession {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl TerminalSession {
    /// Takes over the terminal of standard output.
    ///
    /// # Errors
    /// It is not a terminal, or cannot be changed.
    pub(crate) fn enter() -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        let begun = execute!(io::stdout(), EnterAlternateScreen, Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        begun.map(|terminal| Self { terminal }).inspect_err(|_| restore())
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, if it is taken.
fn restore() {
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // There is nothing left to do if the terminal is gone.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// The message of a panic would be lost with the alternate screen.
fn restore_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            previous(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_that_was_not_taken_is_left_alone() {
        restore();
        assert!(!IS_TAKEN.load(Ordering::SeqCst));
    }
}
