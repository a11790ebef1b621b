//! Sessions that their clients abandon, in five ways; after their time nothing of them is left.

use std::time::{Duration, Instant};

use super::target::{HttpTarget, mib};
use super::wire::{self, RawHttpClient};
use crate::TaskResult;
use crate::table::TextTable;

/// The lifetime of an idle session.
const TTL: u64 = 2;

type AbandonMethod = fn(&mut RawHttpClient, &HttpTarget) -> TaskResult;

const ABANDON_METHODS: &[(&str, AbandonMethod)] = &[
    ("never used again", |client, _| open(client).map(drop)),
    ("used once, connection dropped", |_, target| {
        let mut own = RawHttpClient::connect(target.address)?;
        let session = open(&mut own)?;
        own.request(&wire::legacy_call(&session)).map(drop)
    }),
    ("dropped before the answer", |_, target| {
        RawHttpClient::connect(target.address)?.send(&wire::initialize())
    }),
    ("dropped with a stream open", |client, target| {
        let session = open(client)?;
        let mut own = RawHttpClient::connect(target.address)?;
        own.send(&wire::bare("GET", &session))?;
        own.wait_for_bytes()
    }),
    ("ended by its client", |client, _| {
        let session = open(client)?;
        client.request(&wire::bare("DELETE", &session)).map(drop)
    }),
];

fn open(client: &mut RawHttpClient) -> TaskResult<String> {
    let reply = client.request(&wire::initialize())?;
    let session = reply.header("mcp-session-id").map(str::to_owned);
    session.ok_or_else(|| format!("no session: {} {}", reply.status, reply.body).into())
}

pub(crate) fn campaign(number: usize) -> TaskResult {
    let most = (number + 1).to_string();
    let mut target = HttpTarget::echo(&["--max-sessions", &most, "--session-ttl", &TTL.to_string()])?;
    let mut table = TextTable::new(&[
        "way",
        "sessions",
        "seconds",
        "before",
        "when opened",
        "after their time",
        "descriptors",
    ]);
    // Once for the allocator, which keeps what it once had.
    round(&mut target, ABANDON_METHODS.first().ok_or("no way")?.1, number)?;
    for (name, way) in ABANDON_METHODS {
        let before = target.usage()?;
        let started = Instant::now();
        let opened = round(&mut target, *way, number)?;
        let seconds = format!("{:.1}", started.elapsed().as_secs_f64());
        let after = target.usage()?;
        let descriptors = format!("{} -> {}", before.descriptors, after.descriptors);
        let cells = [mib(before.memory), mib(opened), mib(after.memory)];
        table.row(
            [vec![(*name).to_owned(), number.to_string(), seconds], cells.to_vec(), vec![descriptors]]
                .concat(),
        );
    }
    print!("{}", table.render());
    wire::assert_served(target.address)
}

/// Abandons sessions in one way and waits until their time is over; returns the memory when all were open.
fn round(target: &mut HttpTarget, way: AbandonMethod, number: usize) -> TaskResult<usize> {
    let idle = target.usage()?.descriptors;
    let mut client = RawHttpClient::connect(target.address)?;
    for _ in 0..number {
        way(&mut client, target)?;
    }
    drop(client);
    let opened = target.usage()?.memory;
    target.settle(idle, Duration::from_secs(30))?;
    std::thread::sleep(Duration::from_secs(TTL * 2));
    Ok(opened)
}
