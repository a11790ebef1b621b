//! Callers that go on calling while something is done to the hub or its servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::client::{CallEnd, CallOptions, LoadCaller};
use crate::hub_driver::until;

/// Beyond this many wrong calls the list ends.
const MOST_WRONG: usize = 10;

/// What came of all calls.
#[derive(Debug, Default)]
pub(crate) struct CallTally {
    pub(crate) answered: u64,
    /// How often a call was refused, by the words for it without names and numbers.
    refused: BTreeMap<String, u64>,
    /// Calls that ended as none may.
    pub(crate) wrong: Vec<String>,
}

/// The errors that a caller may get. Any other does not name the cause.
const CLEAR: &[(&str, &str)] = &[
    ("was lost", "lost"),
    ("unavailable: it is disabled", "disabled"),
    ("unavailable: it is no longer configured", "removed"),
    ("unavailable: it was disconnected", "disconnected"),
    ("unavailable:", "unavailable"),
    ("is still starting", "starting"),
    ("Unknown tool", "unknown tool"),
];

impl CallTally {
    pub(crate) fn calls(&self) -> u64 {
        self.answered + self.refused.values().sum::<u64>()
    }

    /// Writes how often calls were refused, and why.
    pub(crate) fn reasons(&self) -> String {
        let reasons = self.refused.iter().map(|(reason, count)| format!("{count} {reason}"));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        if reasons.is_empty() { "none".to_owned() } else { reasons }
    }

    pub(crate) fn note(&mut self, outcome: Result<CallEnd, String>) {
        match outcome {
            Ok(CallEnd::Answered) => self.answered += 1,
            Ok(CallEnd::Refused(said)) => match CLEAR.iter().find(|(words, _)| said.contains(words)) {
                Some((_, reason)) => *self.refused.entry((*reason).to_owned()).or_default() += 1,
                None => self.wrong.push(format!("refused without a reason: {said}")),
            },
            Err(wrong) => self.wrong.push(wrong),
        }
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.answered += other.answered;
        self.wrong.extend(other.wrong);
        for (reason, count) in other.refused {
            *self.refused.entry(reason).or_default() += count;
        }
        self
    }
}

/// Calls servers in turns from many callers at once while an action runs, and returns the results.
pub(crate) fn during(
    address: SocketAddr,
    callers: usize,
    servers: &[String],
    act: impl FnOnce(&CallLoad),
) -> CallTally {
    let load = CallLoad::default();
    std::thread::scope(|scope| {
        for number in 0..callers {
            let load = &load;
            scope.spawn(move || load.call(address, number, servers, u64::MAX));
        }
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(&load)));
        load.is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    load.total.into_inner()
}

/// Makes a number of calls from each of many callers at once.
pub(crate) fn of(address: SocketAddr, callers: usize, servers: &[String], each: u64) -> CallTally {
    let load = CallLoad::default();
    std::thread::scope(|scope| {
        for number in 0..callers {
            let load = &load;
            scope.spawn(move || load.call(address, number, servers, each));
        }
    });
    load.total.into_inner()
}

/// Callers at work.
#[derive(Debug, Default)]
pub(crate) struct CallLoad {
    is_over: AtomicBool,
    total: Mutex<CallTally>,
    answered: AtomicU64,
}

impl CallLoad {
    /// Waits until some more calls were answered, so that whatever is done next is done to servers at work.
    pub(crate) fn wait_progress(&self) {
        let enough = self.answered.load(Ordering::Relaxed) + 4;
        until("calls are answered", || {
            self.answered.load(Ordering::Relaxed) >= enough || self.is_over.load(Ordering::Relaxed)
        });
    }

    fn call(&self, address: SocketAddr, number: usize, servers: &[String], most: u64) {
        let mut tally = CallTally::default();
        let mut caller = LoadCaller::connect(address, number);
        let mut made = 0;
        while made < most && !self.is_over.load(Ordering::Relaxed) && tally.wrong.len() < MOST_WRONG {
            let turn = number as u64 + made;
            let server = &servers[usize::try_from(turn).unwrap() % servers.len()];
            // Some report how far they are, and some take long enough to be there when something happens.
            let steps = if turn.is_multiple_of(3) { 2 } else { 0 };
            let wait = if most == u64::MAX { turn % 4 } else { 0 };
            let before = tally.answered;
            tally.note(caller.call(server, CallOptions { steps, wait }));
            made += 1;
            self.answered.fetch_add(tally.answered - before, Ordering::Relaxed);
        }
        if tally.wrong.is_empty() {
            caller.leave();
        } else {
            // What goes wrong once is enough.
            self.is_over.store(true, Ordering::Relaxed);
        }
        let mut total = self.total.lock();
        *total = std::mem::take(&mut *total).merge(tally);
    }
}

/// Calls a server until it answers, which it must.
pub(crate) fn recovers(address: SocketAddr, servers: &[String]) {
    for (number, server) in servers.iter().enumerate() {
        let mut caller = LoadCaller::connect(address, number);
        until(&format!("`{server}` answers again"), || {
            matches!(caller.call(server, CallOptions { steps: 1, wait: 0 }).unwrap(), CallEnd::Answered)
        });
        caller.leave();
    }
}
