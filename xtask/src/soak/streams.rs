//! Standing streams, held open past a few of the comments that keep them alive.

use std::thread::sleep;
use std::time::Duration;

use super::target::{Target, mib};
use super::wire::{self, Client};
use crate::Outcome;
use crate::table::Table;

const HELD_FOR: Duration = Duration::from_secs(35);

pub(crate) fn campaign(number: usize) -> Outcome {
    let mut target = Target::echo(&[])?;
    let before = target.held()?;
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n";
    let body = wire::modern("subscriptions/listen", r#""notifications":{"toolsListChanged":true},"#);
    let request = wire::post(headers, &body);
    let mut streams = Vec::with_capacity(number);
    for _ in 0..number {
        let mut client = Client::connect(target.address)?;
        client.send(&request)?;
        client.hear()?;
        streams.push(client);
    }
    let opened = target.held()?;
    sleep(HELD_FOR);
    let held = target.held()?;
    let each = held.memory.saturating_sub(before.memory) * 1024 / number.max(1);
    drop(streams);
    let after = target.settle(before.descriptors, Duration::from_secs(30))?;
    let mut table =
        Table::new(&["streams", "before", "opened", "after 35 s", "bytes each", "dropped", "descriptors"]);
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
