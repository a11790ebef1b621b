//! Servers over HTTP that are killed and started again at the same address while they are called.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

use crate::CampaignReport;
use crate::hub_driver::{HubDriver, free_address, until_listening};
use crate::kills::names;
use crate::load::{during, recovers};
use crate::process::RoleProcess;

/// How long a server is gone.
const PAUSE: Duration = Duration::from_millis(3);

pub(crate) fn campaign(steward: &HubDriver, number: usize) -> CampaignReport {
    let servers = names(8);
    let mut running: Vec<(SocketAddr, RoleProcess)> = servers
        .iter()
        .map(|name| {
            let address = free_address();
            (address, started(name, address))
        })
        .collect();
    let reached =
        servers.iter().zip(&running).map(|(name, (address, _))| format!("{name}=http://{address}/mcp"));
    steward.set(&reached.collect::<Vec<_>>());
    let tally = during(steward.address, 16, &servers, |load| {
        for turn in 0..number {
            load.wait_progress();
            let at = turn % servers.len();
            let (address, role) = &mut running[at];
            role.kill();
            sleep(PAUSE);
            *role = started(&servers[at], *address);
        }
    });
    recovers(steward.address, &servers);
    CampaignReport { faults: format!("{number} restarts of 8 servers over HTTP"), tally }
}

/// Starts a server, and waits until it listens.
fn started(name: &str, address: SocketAddr) -> RoleProcess {
    let role = RoleProcess::start(&["upstream", name, &address.to_string()], false);
    until_listening(address);
    role
}
