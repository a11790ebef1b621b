//! Standing streams, held open past a few of the comments that keep them alive.

use std::thread::sleep;
use std::time::Duration;

use super::target::{HttpTarget, mib};
use super::wire::{self, RawHttpClient};
use crate::TaskResult;
use crate::table::TextTable;

const HOLD_DURATION: Duration = Duration::from_secs(35);

pub(crate) fn campaign(number: usize) -> TaskResult {
    let mut target = HttpTarget::echo(&[])?;
    let before = target.usage()?;
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n";
    let body = wire::modern("subscriptions/listen", r#""notifications":{"toolsListChanged":true},"#);
    let request = wire::post(headers, &body);
    let mut streams = Vec::with_capacity(number);
    for _ in 0..number {
        let mut client = RawHttpClient::connect(target.address)?;
        client.send(&request)?;
        client.wait_for_bytes()?;
        streams.push(client);
    }
    let opened = target.usage()?;
    sleep(HOLD_DURATION);
    let held = target.usage()?;
    let each = held.memory.saturating_sub(before.memory) * 1024 / number.max(1);
    drop(streams);
    let after = target.settle(before.descriptors, Duration::from_secs(30))?;
    let mut table = TextTable::new(&[
        "streams",
        "before",
        "opened",
        "after 35 s",
        "bytes each",
        "dropped",
        "descriptors",
    ]);
    table.row(vec![
        number.to_string(),
        mib(before.memory),
        mib(opened.memory),
        mib(held.memory),
        each.to_string(),
        mib(after.memory),
        format!("{} -> {} -> {}", before.descriptors, held.descriptors, after.descriptors),
    ]);
    print!("{}", table.render());
    wire::assert_served(target.address)
}
