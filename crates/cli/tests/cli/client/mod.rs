//! The commands of a client against real servers: in both eras, over every transport, with and without a terminal.

mod answers;
mod arguments;
mod cancel;
mod doctor;
mod documented;
mod failures;
mod hostile;
mod lists;
mod peer;
mod results;
#[cfg(target_os = "linux")]
mod screen_grid;
#[allow(dead_code, reason = "its `main` is for those who run it")]
#[path = "../../../../../examples/shop.rs"]
mod shop;
mod targets;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod tty;
mod watch;

pub(crate) use self::peer::{TRANSPORTS, TestPeer};
#[cfg(target_os = "linux")]
pub(crate) use self::tty::PseudoTerminal;
use crate::process::{FinishedCommand, run};

/// Runs a command against a peer over one of the ways to it.
#[track_caller]
fn ask(peer: &TestPeer, way: &str, words: &[&str]) -> FinishedCommand {
    run(&peer.command(way, words).iter().map(String::as_str).collect::<Vec<_>>(), "")
}

/// Runs a command that must succeed, and returns what it printed.
#[track_caller]
fn output(peer: &TestPeer, way: &str, words: &[&str]) -> String {
    let finished = ask(peer, way, words);
    assert_eq!(finished.code, Some(0), "{way}: {words:?}: {finished:?}");
    finished.stdout
}
