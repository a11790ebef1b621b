//! Calls that are cancelled while they run, over pipes by a message and over HTTP by leaving.

use std::collections::BTreeSet;
use std::io::{BufRead as _, Write as _};
use std::time::{Duration, Instant};

use super::mutate::RandomSource;
use super::target::{HttpTarget, PipedTarget, mib};
use super::wire::{self, RawHttpClient};
use crate::TaskResult;
use crate::table::TextTable;

const SEED: u64 = 0x6361_6e63_656c;

/// Calls that run at one time.
const CONCURRENT_CALLS: usize = 32;

pub(crate) fn campaign(number: usize) -> TaskResult {
    let mut table = TextTable::new(&["over", "cancelled", "seconds", "before", "after", "late answers"]);
    table.row(over_pipes(number)?);
    table.row(over_http(number)?);
    print!("{}", table.render());
    Ok(())
}

/// A call that sleeps for much longer than the campaign takes, or for so short that it may end before it is cancelled.
fn members(dice: &mut RandomSource) -> String {
    let milliseconds = if dice.below(4) == 0 { dice.below(2) } else { 3_600_000 };
    format!(r#""name":"test_slow","arguments":{{"milliseconds":{milliseconds}}},"#)
}

fn over_pipes(number: usize) -> TaskResult<Vec<String>> {
    let mut target = PipedTarget::everything()?;
    let mut dice = RandomSource::new(SEED);
    let mut before = target.usage()?;
    let mut late = 0;
    let started = Instant::now();
    let mut id = 0;
    while id < number {
        if id <= number / 10 {
            before = target.usage()?;
        }
        let mut lines = Vec::new();
        let turn: Vec<usize> = (0..CONCURRENT_CALLS.min(number - id)).map(|n| id + n).collect();
        for id in &turn {
            lines.extend(wire::modern_with_id(*id, "tools/call", &members(&mut dice)));
            lines.push(b'\n');
        }
        for id in &turn {
            let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#;
            lines.extend(format!("{note}{id}}}}}\n").bytes());
        }
        id += turn.len();
        lines.extend(format!("{{\"jsonrpc\":\"2.0\",\"id\":\"mark-{id}\",\"method\":\"ping\"}}\n").bytes());
        target.input.write_all(&lines)?;
        late += late_answers(&mut target, &turn, &format!("mark-{id}"))?;
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok(row("pipes", number, seconds, before.memory, target.usage()?.memory, &late.to_string()))
}

/// Reads up to the mark; an answer to a call of an earlier turn came after the call was cancelled.
fn late_answers(target: &mut PipedTarget, turn: &[usize], mark: &str) -> TaskResult<usize> {
    let known: BTreeSet<String> = turn.iter().map(|id| format!("\"id\":{id},")).collect();
    let mut late = 0;
    loop {
        let mut line = String::new();
        if target.output.read_line(&mut line)? == 0 {
            return Err("the server ended".into());
        }
        if line.contains(mark) {
            return Ok(late);
        }
        late += usize::from(!known.iter().any(|id| line.contains(id)));
    }
}

fn over_http(number: usize) -> TaskResult<Vec<String>> {
    let mut target = HttpTarget::everything()?;
    let mut dice = RandomSource::new(SEED);
    let mut before = target.usage()?;
    let started = Instant::now();
    let mut running = Vec::with_capacity(CONCURRENT_CALLS);
    for n in 0..number {
        if n <= number / 10 && n % 256 == 0 {
            before = target.usage()?;
        }
        let mut client = RawHttpClient::connect(target.address)?;
        let body = wire::modern("tools/call", &members(&mut dice));
        client.send(&wire::post(&wire::call_headers("test_slow"), &body))?;
        running.push(client);
        if running.len() >= CONCURRENT_CALLS {
            let leaving = dice.below(running.len());
            drop(running.swap_remove(leaving));
        }
    }
    drop(running);
    let after = target.settle(before.descriptors, Duration::from_secs(30))?;
    let seconds = started.elapsed().as_secs_f64();
    wire::assert_served(target.address)?;
    Ok(row("HTTP", number, seconds, before.memory, after.memory, "-"))
}

fn row(over: &str, number: usize, seconds: f64, before: usize, after: usize, late: &str) -> Vec<String> {
    let seconds = format!("{seconds:.1}");
    vec![over.to_owned(), number.to_string(), seconds, mib(before), mib(after), late.to_owned()]
}
