//! Programs that are killed while they are called.

use crate::load::{during, recovers};
use crate::steward::{Steward, until};
use crate::{Done, process};

/// Servers behind the hub, every other one spoken to in a revision with sessions.
pub(crate) fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{}{number}", if number % 2 == 0 { "new" } else { "old" })).collect()
}

pub(crate) fn campaign(steward: &Steward, number: usize) -> Done {
    let servers = names(8);
    steward.set(&servers.iter().map(|name| format!("{name}=stdio,-")).collect::<Vec<_>>());
    let tally = during(steward.address, 16, &servers, |load| {
        for turn in 0..number {
            load.goes_on();
            until("there is a program to kill", || {
                let alive = process::servers(steward.id());
                alive.get(turn % alive.len().max(1)).is_some_and(|id| process::kill(*id))
            });
        }
    });
    recovers(steward.address, &servers);
    Done { faults: format!("{number} kills of 8 programs"), tally }
}
