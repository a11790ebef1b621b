//! Many callers with the same ids and tokens, over several servers of both kinds and both eras.

use std::net::SocketAddr;

use crate::CampaignReport;
use crate::hub_driver::{HubDriver, free_address, until_listening};
use crate::kills::names;
use crate::load::of;
use crate::process::RoleProcess;

const CALLERS: usize = 64;

pub(crate) fn campaign(steward: &HubDriver, number: usize) -> CampaignReport {
    let servers = names(8);
    // The first half over pipes, the second over HTTP; both have servers of each era.
    let (piped, remote) = servers.split_at(4);
    let running: Vec<(SocketAddr, RoleProcess)> = remote
        .iter()
        .map(|name| {
            let address = free_address();
            let role = RoleProcess::start(&["upstream", name, &address.to_string()], false);
            until_listening(address);
            (address, role)
        })
        .collect();
    let piped = piped.iter().map(|name| format!("{name}=stdio,-"));
    let remote =
        remote.iter().zip(&running).map(|(name, (address, _))| format!("{name}=http://{address}/mcp"));
    steward.set(&piped.chain(remote).collect::<Vec<_>>());
    let each = number.div_ceil(CALLERS) as u64;
    let tally = of(steward.address, CALLERS, &servers, each);
    assert_eq!(
        tally.answered,
        tally.calls(),
        "nothing was done to any server, so that every call is answered: {}, {:?}",
        tally.reasons(),
        tally.wrong,
    );
    CampaignReport { faults: format!("{CALLERS} callers with the same ids and tokens over 8 servers"), tally }
}
