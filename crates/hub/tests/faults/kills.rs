//! Programs that are killed while they are called.

use crate::hub_driver::{HubDriver, until};
use crate::load::{during, recovers};
use crate::{CampaignReport, process};

/// Servers behind the hub, every other one in a revision with sessions.
pub(crate) fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{}{number}", if number % 2 == 0 { "new" } else { "old" })).collect()
}

pub(crate) fn campaign(steward: &HubDriver, number: usize) -> CampaignReport {
    let servers = names(8);
    steward.set(&servers.iter().map(|name| format!("{name}=stdio,-")).collect::<Vec<_>>());
    let tally = during(steward.address, 16, &servers, |load| {
        for turn in 0..number {
            load.wait_progress();
            until("there is a program to kill", || {
                let alive = process::servers(steward.id());
                alive.get(turn % alive.len().max(1)).is_some_and(|id| process::kill(*id))
            });
        }
    });
    recovers(steward.address, &servers);
    CampaignReport { faults: format!("{number} kills of 8 programs"), tally }
}
