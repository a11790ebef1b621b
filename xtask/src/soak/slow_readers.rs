//! Clients that ask for a large answer and never read it, until the server cuts them.

use std::time::{Duration, Instant};

use super::target::{HttpTarget, mib};
use super::wire::{self, RawHttpClient};
use crate::TaskResult;
use crate::table::TextTable;

/// More than the kernel keeps for a reader that does not read, so that the rest stays with the server.
const ANSWER: usize = 4_000_000;

/// The server's own limit is 30 s; this is more.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(45);

pub(crate) fn campaign(number: usize) -> TaskResult {
    let mut target = HttpTarget::echo(&[])?;
    let before = target.usage()?;
    let arguments = format!(r#""name":"echo","arguments":{{"message":"{}"}},"#, "s".repeat(ANSWER));
    let request = wire::post(&wire::call_headers("echo"), &wire::modern("tools/call", &arguments));
    let mut readers = Vec::with_capacity(number);
    let mut peak = before.memory;
    for _ in 0..number {
        let mut client = RawHttpClient::connect(target.address)?;
        client.send(&request)?;
        readers.push(client);
        peak = peak.max(target.usage()?.memory);
    }
    let slowest = slowest_answer(&target, 200)?;
    let started = Instant::now();
    let after = target.settle(before.descriptors, EVICTION_TIMEOUT)?;
    let cut = started.elapsed();
    drop(readers);
    let mut table = TextTable::new(&[
        "readers",
        "answer",
        "before",
        "peak",
        "after the cut",
        "cut after",
        "others' slowest",
        "descriptors",
    ]);
    table.row(vec![
        number.to_string(),
        mib(ANSWER / 1024),
        mib(before.memory),
        mib(peak),
        mib(after.memory),
        format!("{:.1} s", cut.as_secs_f64()),
        format!("{:.1} ms", slowest.as_secs_f64() * 1000.0),
        format!("{} -> {}", before.descriptors, after.descriptors),
    ]);
    print!("{}", table.render());
    if after.descriptors > before.descriptors {
        return Err("readers that never read were not cut".into());
    }
    wire::assert_served(target.address)
}

/// Returns the slowest of some calls of a client that reads.
fn slowest_answer(target: &HttpTarget, calls: usize) -> TaskResult<Duration> {
    let arguments = r#""name":"echo","arguments":{"message":"quick"},"#;
    let request = wire::post(&wire::call_headers("echo"), &wire::modern("tools/call", arguments));
    let mut client = RawHttpClient::connect(target.address)?;
    let mut slowest = Duration::ZERO;
    for _ in 0..calls {
        let started = Instant::now();
        client.request(&request)?;
        slowest = slowest.max(started.elapsed());
    }
    Ok(slowest)
}
