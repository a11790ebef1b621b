//! Clients that request a large response and never read it, until the server disconnects them.
//!
//! The target is the command, since the allocator is chosen by the program and not by the library.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::target::{HttpTarget, mib};
use super::wire::{self, RawHttpClient};
use crate::TaskResult;
use crate::table::TextTable;

/// More than the kernel keeps for a reader that does not read, so that the rest stays with the server.
const ANSWER: usize = 4_000_000;

/// The server disconnects a client that reads nothing after 30 s, and after a minute one with the response in the kernel.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(75);

/// How long the server has to return memory to the system after the last client was disconnected.
const RETURN_TIMEOUT: Duration = Duration::from_secs(10);

/// How much more memory than before may stay resident after that, in KiB.
const MAX_RETAINED: usize = 32 * 1024;

/// How much more memory than before may be resident at any time, in KiB: the budgets for unread responses and for large requests,
/// 256 MiB each, and the responses that are being made meanwhile.
const MAX_PEAK: usize = 768 * 1024;

pub(crate) fn campaign(number: usize) -> TaskResult {
    let mut target = HttpTarget::command()?;
    // One call, so that what the first one allocates for good is not counted as retained.
    slowest_answer(&target, 1)?;
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
    peak = peak.max(target.usage()?.memory);
    let started = Instant::now();
    let after = target.settle(before.descriptors, EVICTION_TIMEOUT)?;
    let cut = started.elapsed();
    drop(readers);
    sleep(RETURN_TIMEOUT);
    let later = target.usage()?;
    let mut table = TextTable::new(&[
        "readers",
        "answer",
        "before",
        "peak",
        "after the cut",
        "10 s later",
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
        mib(later.memory),
        format!("{:.1} s", cut.as_secs_f64()),
        format!("{:.1} ms", slowest.as_secs_f64() * 1000.0),
        format!("{} -> {}", before.descriptors, after.descriptors),
    ]);
    print!("{}", table.render());
    if after.descriptors > before.descriptors {
        return Err("readers that never read were not cut".into());
    }
    let grown = |memory: usize| memory.saturating_sub(before.memory);
    if grown(peak) > MAX_PEAK {
        return Err(format!("{} more than before were resident at the peak", mib(grown(peak))).into());
    }
    if grown(later.memory) > MAX_RETAINED {
        return Err(format!("{} more than before stayed resident", mib(grown(later.memory))).into());
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
