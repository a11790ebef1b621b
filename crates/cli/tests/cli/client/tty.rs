//! A terminal that a test controls.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::screen_grid::ScreenGrid;
use crate::process::DEADLINE;

/// Makes the terminal the one that the command is controlled by, so that Ctrl-C is a signal.
const TAKE_TERMINAL: &str = r#"exec "$@" <"$TERMINAL" >"$TERMINAL" 2>"$TERMINAL""#;

/// The command at a terminal of its own.
pub(crate) struct PseudoTerminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    seen: String,
    /// How much of what was seen a test has already waited for.
    passed: usize,
}

impl PseudoTerminal {
    /// Starts the command at a terminal with so many columns.
    #[track_caller]
    #[expect(
        clippy::disallowed_methods,
        reason = "the command is what is tested, at a terminal that is its own"
    )]
    pub(crate) fn start(args: &[String], columns: u16, variables: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        // Else what is written right after Ctrl-C is thrown away together with what was written before.
        let mut modes = tcgetattr(&master).unwrap();
        modes.local_modes |= LocalModes::NOFLSH;
        tcsetattr(&master, OptionalActions::Now, &modes).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let child = Command::new("setsid")
            .args(["sh", "-c", TAKE_TERMINAL, "sh", env!("CARGO_BIN_EXE_trunkline")])
            .args(args)
            .env("TERMINAL", name.to_str().unwrap())
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let keyboard = File::from(master);
        let screen = bytes_of(keyboard.try_clone().unwrap().into());
        Self { child, keyboard, screen, seen: String::new(), passed: 0 }
    }

    /// Waits until a text is on the screen, after what was waited for before.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) {
        loop {
            let ahead = self.seen.get(self.passed..).unwrap();
            if let Some(place) = ahead.find(text) {
                self.passed += place + text.len();
                return;
            }
            match self.screen.recv_timeout(DEADLINE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("no `{text}` on the screen, only:\n{}", self.seen),
            }
        }
    }

    /// Waits until a text is on a screen that the command draws, whatever it drew before.
    #[track_caller]
    pub(crate) fn wait_for_screen(&mut self, text: &str) -> String {
        let begun = std::time::Instant::now();
        loop {
            let shown = ScreenGrid::of(&self.seen);
            if shown.contains(text) {
                return shown;
            }
            assert!(begun.elapsed() < DEADLINE * 3, "no `{text}` on the screen:\n{shown}");
            match self.screen.recv_timeout(DEADLINE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("no `{text}` on the screen:\n{shown}"),
            }
        }
    }

    /// Returns the rest of the line that was waited for last.
    #[track_caller]
    pub(crate) fn wait_for_line(&mut self) -> String {
        let begin = self.passed;
        self.wait_for("\r\n");
        self.seen.get(begin..self.passed).unwrap().trim().to_owned()
    }

    #[track_caller]
    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Sends a signal to the command.
    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        let id = Pid::from_child(&self.child);
        kill_process(id, signal).unwrap();
    }

    /// Waits for a text and types a line.
    #[track_caller]
    pub(crate) fn answer(&mut self, text: &str, line: &str) {
        self.wait_for(text);
        self.type_keys(&format!("{line}\r"));
    }

    /// Waits until the command has ended; returns its exit code and the whole screen.
    #[track_caller]
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        loop {
            match self.screen.recv_timeout(DEADLINE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("the command has not ended; so far:\n{}", self.seen),
            }
        }
        (self.child.wait().unwrap().code(), self.seen.replace("\r\n", "\n"))
    }
}

impl Drop for PseudoTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the output of the terminal until the last process closes it.
fn bytes_of(master: OwnedFd) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut master = File::from(master);
        let mut buffer = [0; 4096];
        let mut opened = false;
        loop {
            match master.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    opened = true;
                    if sender.send(buffer.iter().take(count).copied().collect()).is_err() {
                        break;
                    }
                }
                // Before the other end is opened there is no output to read either.
                Err(_) if opened => break,
                Err(_) => std::thread::yield_now(),
            }
        }
    });
    receiver
}
