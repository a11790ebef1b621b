use std::convert::Infallible;
use std::io::{self, IsTerminal as _, Write};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::progress::Stage;
use super::width::terminal_columns;

/// A bar that moves more often than this only flickers.
const REDRAW: Duration = Duration::from_millis(50);

/// Standard error as a person sees it: lines of words, and below them, on a terminal, a bar that comes and goes.
#[derive(Debug)]
pub(crate) struct Screen {
    is_terminal: bool,
    /// What is written without a terminal is written only if somebody asked for it.
    talkative: bool,
    quiet: bool,
    state: Mutex<State>,
    /// Wakes whoever draws what came too soon after the last.
    stale: Notify,
}

#[derive(Debug, Default)]
struct State {
    bar: Option<String>,
    drawn: Option<Instant>,
    /// What is on the screen is not the last that was said.
    stale: bool,
}

const CLEAR_LINE: &str = "\r\x1b[2K";

impl Screen {
    /// Takes standard error; `quiet` leaves out everything but failures, `talkative` adds progress where there is no bar.
    pub(crate) fn new(quiet: bool, talkative: bool) -> Self {
        let is_terminal =
            io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self { is_terminal, talkative, quiet, state: Mutex::default(), stale: Notify::new() }
    }

    /// Writes words above the bar.
    pub(crate) fn say(&self, words: &str) {
        if !self.quiet {
            self.write_above(words);
        }
    }

    /// Writes words that a person must see in order to answer, whatever was asked for.
    pub(crate) fn insist(&self, words: &str) {
        self.write_above(words);
    }

    /// Shows how far the call is.
    pub(crate) fn progress(&self, stage: &Stage) {
        if self.quiet {
            return;
        }
        if !self.is_terminal {
            if self.talkative {
                write(&format!("progress: {}\n", stage.words()));
            }
            return;
        }
        let mut state = self.lock();
        let bar = stage.bar(terminal_columns());
        let early = state.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW);
        if early {
            state.stale = true;
            self.stale.notify_one();
        } else {
            write(&format!("{CLEAR_LINE}{bar}"));
            (state.drawn, state.stale) = (Some(Instant::now()), false);
        }
        state.bar = Some(bar);
    }

    /// Draws what came too soon after the last, a moment later. It never returns.
    pub(crate) async fn keep_drawn(&self) -> Infallible {
        loop {
            self.stale.notified().await;
            tokio::time::sleep(REDRAW).await;
            let mut state = self.lock();
            if let (true, Some(bar)) = (state.stale, &state.bar) {
                write(&format!("{CLEAR_LINE}{bar}"));
                (state.drawn, state.stale) = (Some(Instant::now()), false);
            }
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        if state.bar.take().is_some() {
            write(CLEAR_LINE);
        }
        state.drawn = None;
    }

    fn write_above(&self, words: &str) {
        let state = self.lock();
        match &state.bar {
            // Words that end within a line are a prompt, and the bar would stand in its way.
            Some(bar) if words.ends_with('\n') => write(&format!("{CLEAR_LINE}{words}{bar}")),
            Some(_) => write(&format!("{CLEAR_LINE}{words}")),
            None => write(words),
        }
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, State> {
        // A thread that panicked while it drew has at worst left half a bar.
        self.state.lock()
    }
}

fn write(words: &str) {
    // Whoever closed standard error does not want to know.
    let _ = io::stderr().write_all(words.as_bytes());
}
