//! `load stores`: what many legacy sessions cost in each store, beside the store in memory.

mod store;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::Value;

use crate::machine::{cpu_time, resident_bytes};
use crate::memory::{connect, open_sessions};
use crate::servers::{Binaries, HttpServer, Program, free_address};
use crate::wire::Client;

use store::{Store, StoreKind};

/// How many sessions, and in which stores.
#[derive(Args)]
pub(crate) struct StoreArguments {
    /// How many sessions each store holds at once.
    #[arg(long, default_value_t = 100_000)]
    sessions: usize,
    /// After how many idle seconds they expire; opening and using all of them has to take less than half of that.
    #[arg(long, default_value_t = 300)]
    ttl: u64,
    /// Only this store; may be repeated.
    #[arg(long, value_enum)]
    only: Vec<StoreKind>,
}

/// How long after their time sessions may still be found: a server looks for them every 30 s, and a session in Redis
/// lives longer by its slack.
const EXPIRY_SLACK: Duration = Duration::from_secs(60);

/// What was measured in one store.
struct StoreFigures {
    /// CPU time to open a session.
    opened: Duration,
    memory_each: f64,
    stored_each: f64,
    /// CPU time of a call that is the first of its session, and of the next one.
    first: CallCost,
    second: CallCost,
    /// How long it took to list sessions, and to find and end one of them.
    listed: Duration,
    ended: Duration,
    /// How much of the store was left once all had expired.
    left: f64,
}

/// CPU time per call.
#[derive(Clone, Copy)]
struct CallCost {
    server: Duration,
    /// That of the database, where it is a process of its own.
    database: Duration,
}

/// Measures and prints the table.
pub(crate) fn run(binaries: &Binaries, arguments: &StoreArguments) -> Result<()> {
    let program = binaries.folder().join("../../../target/release/trunkline");
    ensure!(
        program.is_file(),
        "{} is missing: `cargo build --release --package trunkline-cli` makes it",
        program.display()
    );
    println!("{} legacy sessions in each store, opened, used and listed over HTTP.\n", arguments.sessions);
    println!(
        "| store | µs to open | memory each | stored each | µs of its first call | µs of its second call | × memory | \
         listed | found and ended | left of the store |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let kinds = [StoreKind::Memory, StoreKind::File, StoreKind::Redis];
    let mut base = None;
    for kind in kinds.into_iter().filter(|kind| arguments.only.is_empty() || arguments.only.contains(kind)) {
        eprintln!("{}: {} sessions", kind.name(), arguments.sessions);
        let figures = measure(binaries, &program, kind, arguments).with_context(|| kind.name())?;
        let second = micros(figures.second.server);
        if kind == StoreKind::Memory {
            base = Some(second);
        }
        println!(
            "| {} | {:.1} | {:.0} B | {:.0} B | {} | {} | {} | {} ms | {} ms | {:.0} % |",
            kind.name(),
            micros(figures.opened),
            figures.memory_each,
            figures.stored_each,
            figures.first,
            figures.second,
            base.map_or_else(|| "-".to_owned(), |base| format!("{:.2}", second / base)),
            figures.listed.as_millis(),
            figures.ended.as_millis(),
            figures.left * 100.0,
        );
    }
    Ok(())
}

fn measure(
    binaries: &Binaries,
    program: &Path,
    kind: StoreKind,
    arguments: &StoreArguments,
) -> Result<StoreFigures> {
    let store = Store::start(binaries, kind)?;
    let count = arguments.sessions;
    let (server, admin) = start_server(binaries, program, &store, arguments)?;

    let mut clients = connect(&server)?;
    let warm = clients.len();
    open_sessions(&mut clients, warm)?;
    let (empty, empty_store) = (settled(&server)?, store.bytes()?);
    let (started, before) = (Instant::now(), cpu_time(server.id())?);
    let sessions = open_sessions(&mut clients, count)?;
    let opened = per(cpu_time(server.id())?.saturating_sub(before), count);
    // A store may write what no client waits for a few seconds later.
    thread::sleep(Duration::from_secs(6));
    let (full, full_store) = (settled(&server)?, store.bytes()?);

    let first = call_each(&server, &store, &mut clients, &sessions)?;
    let second = call_each(&server, &store, &mut clients, &sessions)?;
    let took = started.elapsed();
    ensure!(
        took < Duration::from_secs(arguments.ttl / 2),
        "opening and using {count} sessions took {took:?}; use a longer --ttl"
    );

    let listing = Instant::now();
    let listed = admin.sessions()?;
    let listing = listing.elapsed();
    ensure!(listed.is_truncated == (count > listed.count), "{} of {count} sessions are listed", listed.count);
    let gone = sessions.first().context("no session was opened")?;
    let ending = Instant::now();
    admin.end(gone)?;
    let ended = ending.elapsed();
    let client = clients.first_mut().context("no connection is left")?;
    ensure!(client.probe_session(gone)? == 404, "an ended session goes on");

    drop(clients);
    thread::sleep(Duration::from_secs(arguments.ttl) + EXPIRY_SLACK);
    let listed = admin.sessions()?;
    ensure!(listed.count == 0, "{} sessions have not expired", listed.count);
    let mut client = Client::connect(server.address())?;
    let last = sessions.last().context("no session was opened")?;
    ensure!(client.probe_session(last)? == 404, "an expired session goes on");
    let grown = full_store.saturating_sub(empty_store);
    let left = store.bytes()?.saturating_sub(empty_store);
    Ok(StoreFigures {
        opened,
        memory_each: full.saturating_sub(empty) as f64 / count as f64,
        stored_each: grown as f64 / count as f64,
        first,
        second,
        listed: listing,
        ended,
        left: if grown == 0 { 0.0 } else { left as f64 / grown as f64 },
    })
}

/// Starts a hub with the store and nothing but its own tool.
fn start_server(
    binaries: &Binaries,
    program: &Path,
    store: &Store,
    arguments: &StoreArguments,
) -> Result<(HttpServer, AdminCommand)> {
    let address = free_address()?;
    // Commands find a running hub by its file, too.
    let config = store.folder().join("trunkline.toml");
    std::fs::File::create_new(&config)?;
    let socket = store.folder().join("admin.sock");
    let mut words: Vec<String> =
        ["serve", "--trust", "--builtin", "echo", "--log-level", "error"].map(str::to_owned).into();
    for (option, value) in [
        ("--http", address.to_string()),
        ("--config", config.display().to_string()),
        ("--admin-socket", socket.display().to_string()),
        ("--session-ttl", format!("{}s", arguments.ttl)),
        ("--max-sessions", (arguments.sessions + 1_000).to_string()),
    ] {
        words.extend([option.to_owned(), value]);
    }
    words.extend(store.options());
    let started = Program {
        name: "trunkline",
        path: program.to_owned(),
        arguments: words.into_iter().map(Into::into).collect(),
    };
    let server = HttpServer::start_program(binaries, &started, address)?;
    Ok((server, AdminCommand { program: program.to_owned(), config, socket }))
}

/// Makes one call in each session, each of which has to succeed.
fn call_each(
    server: &HttpServer,
    store: &Store,
    clients: &mut [Client],
    sessions: &[String],
) -> Result<CallCost> {
    let before = (cpu_time(server.id())?, store.cpu_time()?);
    for group in sessions.chunks(clients.len()) {
        for (client, session) in clients.iter_mut().zip(group) {
            client.send_probe(session)?;
        }
        for (client, session) in clients.iter_mut().zip(group) {
            let status = client.receive_status()?;
            ensure!(status == 200, "the session {} answered with status {status}", &session);
        }
    }
    Ok(CallCost {
        server: per(cpu_time(server.id())?.saturating_sub(before.0), sessions.len()),
        database: per(store.cpu_time()?.saturating_sub(before.1), sessions.len()),
    })
}

/// `trunkline sessions` of one server.
struct AdminCommand {
    program: PathBuf,
    config: PathBuf,
    socket: PathBuf,
}

/// What it printed.
struct ListedSessions {
    count: usize,
    is_truncated: bool,
}

impl AdminCommand {
    fn sessions(&self) -> Result<ListedSessions> {
        let report: Value = serde_json::from_slice(&self.run(&["sessions", "--json"])?)?;
        let sessions = report.get("sessions").and_then(Value::as_array).context("no list of sessions")?;
        let is_truncated = report.get("is_truncated").and_then(Value::as_bool).unwrap_or_default();
        Ok(ListedSessions { count: sessions.len(), is_truncated })
    }

    fn end(&self, session: &str) -> Result<()> {
        self.run(&["sessions", session, "--end"]).map(drop)
    }

    fn run(&self, words: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--config").arg(&self.config).arg("--admin-socket").arg(&self.socket);
        command.stdin(Stdio::null());
        let output = command.output().context("run `trunkline sessions`")?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`trunkline {}` failed: {stderr}", words.join(" "));
        Ok(output.stdout)
    }
}

/// Gives the resident memory of a server once it has come to rest.
fn settled(server: &HttpServer) -> Result<u64> {
    thread::sleep(Duration::from_millis(300));
    resident_bytes(server.id())
}

fn per(time: Duration, count: usize) -> Duration {
    time.checked_div(u32::try_from(count).unwrap_or(u32::MAX)).unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1_000.0
}

impl std::fmt::Display for CallCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1}", micros(self.server))?;
        if self.database.is_zero() { Ok(()) } else { write!(f, " + {:.1}", micros(self.database)) }
    }
}
