//! A hundred at once who call, switch servers off and on, and apply other configurations.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::CampaignReport;
use crate::hub_driver::HubDriver;
use crate::kills::names;
use crate::load::{during, recovers};

const CALLERS: usize = 70;
const SWITCHERS: usize = 20;
const APPLIERS: usize = 10;

/// Of how many orders one applies a configuration; the others are much cheaper.
const ONE_IN: usize = 20;

pub(crate) fn campaign(steward: &HubDriver, number: usize) -> CampaignReport {
    let servers = names(8);
    let all: Vec<String> = servers.iter().map(|name| format!("{name}=stdio,-")).collect();
    steward.set(&all);
    let (switched, applied) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let tally = during(steward.address, CALLERS, &servers, |load| {
        load.wait_progress();
        std::thread::scope(|scope| {
            for task in 0..SWITCHERS {
                let (switched, servers) = (&switched, &servers);
                scope.spawn(move || {
                    for turn in 0..number.div_ceil(SWITCHERS) {
                        let verb = if turn % 2 == 0 { "off" } else { "on" };
                        steward.order(&format!("{verb} {}", servers[(task + turn / 2) % servers.len()]));
                        switched.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for task in 0..APPLIERS {
                let (applied, servers) = (&applied, &servers);
                scope.spawn(move || {
                    for turn in 0..number.div_ceil(APPLIERS * ONE_IN) {
                        steward.set(&variant(servers, task + turn * APPLIERS));
                        applied.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
    });
    steward.set(&all);
    servers.iter().for_each(|name| drop(steward.order(&format!("on {name}"))));
    recovers(steward.address, &servers);
    let (switched, applied) = (switched.into_inner(), applied.into_inner());
    CampaignReport {
        faults: format!(
            "{switched} switched, {applied} configurations applied by 30 tasks beside 70 callers"
        ),
        tally,
    }
}

/// A configuration: one server is left out, one is described otherwise, the others are the same.
fn variant(servers: &[String], turn: usize) -> Vec<String> {
    let (absent, changed) = (turn % servers.len(), (turn / 3) % servers.len());
    let described = |(at, name): (usize, &String)| {
        let variant = if at == changed { turn.to_string() } else { "-".to_owned() };
        (at != absent).then(|| format!("{name}=stdio,{variant}"))
    };
    servers.iter().enumerate().filter_map(described).collect()
}
