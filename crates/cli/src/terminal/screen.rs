use std::convert::Infallible;
use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::progress::{CallProgress, FREE_COLUMNS};
use super::width::{terminal_columns, truncate_to_width};

/// A bar that moves more often than this only flickers.
const REDRAW_INTERVAL: Duration = Duration::from_millis(50);

/// Standard error for the user: lines of text, and on a terminal a progress bar below them.
#[derive(Debug)]
pub(crate) struct StderrScreen {
    is_terminal: bool,
    /// Without a terminal, progress is printed only if requested.
    verbose: bool,
    quiet: bool,
    state: Mutex<ProgressBarState>,
    /// Wakes the task that redraws a bar that was throttled.
    redraw: Notify,
}

#[derive(Debug, Default)]
struct ProgressBarState {
    bar: Option<String>,
    drawn_at: Option<Instant>,
    /// The bar on the screen is older than `bar`.
    needs_redraw: bool,
}

const CLEAR_LINE: &str = "\r\x1b[2K";

impl StderrScreen {
    /// Creates the screen; `quiet` prints only failures, `verbose` adds progress where there is no bar.
    pub(crate) fn new(quiet: bool, verbose: bool) -> Self {
        let is_terminal =
            io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self { is_terminal, verbose, quiet, state: Mutex::default(), redraw: Notify::new() }
    }

    /// Writes words above the bar.
    pub(crate) fn print(&self, words: &str) {
        if !self.quiet {
            self.write_above(words);
        }
    }

    /// Writes text that the user must see in order to answer, even with `--quiet`.
    pub(crate) fn print_always(&self, words: &str) {
        self.write_above(words);
    }

    /// Shows how far the call is.
    pub(crate) fn show_progress(&self, stage: &CallProgress) {
        if self.quiet {
            return;
        }
        if !self.is_terminal {
            if self.verbose {
                write_stderr(&format!("progress: {}\n", stage.to_text()));
            }
            return;
        }
        let mut state = self.lock();
        let bar = stage.render_bar(terminal_columns());
        let early = state.drawn_at.is_some_and(|drawn| drawn.elapsed() < REDRAW_INTERVAL);
        if early {
            state.needs_redraw = true;
            self.redraw.notify_one();
        } else {
            write_stderr(&format!("{CLEAR_LINE}{bar}"));
            (state.drawn_at, state.needs_redraw) = (Some(Instant::now()), false);
        }
        state.bar = Some(bar);
    }

    /// Shows a line in the place of the bar, on a terminal only.
    pub(crate) fn show_status(&self, words: &str) {
        if !self.shows_status() {
            return;
        }
        let line = truncate_to_width(words, terminal_columns().saturating_sub(FREE_COLUMNS));
        let mut state = self.lock();
        write_stderr(&format!("{CLEAR_LINE}{line}"));
        (state.drawn_at, state.needs_redraw) = (Some(Instant::now()), false);
        state.bar = Some(line);
    }

    /// Reports whether a status line can be shown.
    pub(crate) fn shows_status(&self) -> bool {
        self.is_terminal && !self.quiet
    }

    /// Draws what came too soon after the last, a moment later. It never returns.
    pub(crate) async fn redraw_loop(&self) -> Infallible {
        loop {
            self.redraw.notified().await;
            tokio::time::sleep(REDRAW_INTERVAL).await;
            let mut state = self.lock();
            if let (true, Some(bar)) = (state.needs_redraw, &state.bar) {
                write_stderr(&format!("{CLEAR_LINE}{bar}"));
                (state.drawn_at, state.needs_redraw) = (Some(Instant::now()), false);
            }
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear_bar(&self) {
        let mut state = self.lock();
        if state.bar.take().is_some() {
            write_stderr(CLEAR_LINE);
        }
        state.drawn_at = None;
    }

    /// Clears the line on which the terminal shows `^C`, with what was on it.
    pub(crate) fn clear_interrupt(&self) {
        if self.is_terminal {
            let mut state = self.lock();
            (state.bar, state.drawn_at) = (None, None);
            write_stderr(CLEAR_LINE);
        }
    }

    fn write_above(&self, words: &str) {
        let state = self.lock();
        match &state.bar {
            // Text without a line end is a prompt, and the bar must not follow it.
            Some(bar) if words.ends_with('\n') => write_stderr(&format!("{CLEAR_LINE}{words}{bar}")),
            Some(_) => write_stderr(&format!("{CLEAR_LINE}{words}")),
            None => write_stderr(words),
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, ProgressBarState> {
        // A thread that panicked while it drew has at worst left half a bar.
        self.state.lock()
    }
}

fn write_stderr(words: &str) {
    // A closed standard error is ignored.
    let _ = io::stderr().write_all(words.as_bytes());
}
