//! `load memory`: what an idle session and a standing stream hold in resident memory.

mod sessions;
mod streams;

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{ArgGroup, Args};

use crate::machine::{ensure_descriptors, resident_bytes};
use crate::servers::{Binaries, Kind};
use crate::verdict::Verdict;

use sessions::{SessionFigures, SessionPlan};
pub(crate) use sessions::{connect, open_sessions};
use streams::{Stream, StreamPlan};

/// How many sessions and streams.
#[derive(Args)]
#[command(group(ArgGroup::new("size").required(true)))]
pub(crate) struct MemoryArguments {
    /// 20,000 sessions and 2,000 streams.
    #[arg(long, group = "size")]
    quick: bool,
    /// 100,000 sessions, and 8,000 streams held for 40 s, so that keep-alive comments have been sent on them.
    #[arg(long, group = "size")]
    full: bool,
    /// End with an error when our server misses a target.
    #[arg(long)]
    enforce: bool,
}

const SESSION_TARGET: f64 = 4.0 * 1024.0;
const STREAM_TARGET: f64 = 24.0 * 1024.0;

/// A second batch of sessions may not need more than this share of the first one's peak: expired ones were freed.
const SECOND_BATCH_TARGET: f64 = 1.1;

/// rmcp keeps tasks and channels for each session; more of them would measure the machine's memory.
const RMCP_SESSIONS: usize = 5_000;

/// Measures and prints both tables.
pub(crate) fn run(binaries: &Binaries, arguments: &MemoryArguments) -> Result<()> {
    let (sessions, streams) = if arguments.full {
        (
            SessionPlan { count: 100_000, ttl: Duration::from_secs(60) },
            StreamPlan { count: 8_000, hold: Duration::from_secs(40) },
        )
    } else {
        (
            SessionPlan { count: 20_000, ttl: Duration::from_secs(20) },
            StreamPlan { count: 2_000, hold: Duration::from_secs(1) },
        )
    };
    ensure_descriptors(streams.count as u64 + 256)?;
    let mut missed = print_sessions(binaries, sessions)?;
    missed.extend(print_streams(binaries, streams)?);
    ensure!(!arguments.enforce || missed.is_empty(), "targets missed: {}", missed.join("; "));
    Ok(())
}

fn print_sessions(binaries: &Binaries, plan: SessionPlan) -> Result<Vec<String>> {
    println!(
        "Idle legacy sessions, opened over {} connections, expiring after {:?}.\n",
        sessions::CONNECTIONS,
        plan.ttl
    );
    println!(
        "| server | sessions | bytes each | ours ≤ 4 KiB | empty MiB | first batch | expired | second batch | no growth |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    // The limit keeps no sessions, so there is nothing to measure on it.
    for kind in binaries.kinds().into_iter().filter(|kind| *kind != Kind::Bare) {
        let count = if kind == Kind::Rmcp { plan.count.min(RMCP_SESSIONS) } else { plan.count };
        eprintln!("{}: {count} sessions", kind.name());
        let figures =
            sessions::measure(binaries, kind, SessionPlan { count, ..plan }).with_context(|| kind.name())?;
        let SessionFigures { empty, first, expired, second } = figures;
        let each = grown(empty, first) / count as f64;
        let size = verdict(kind, each, SESSION_TARGET);
        let growth = verdict(kind, second as f64 / first as f64, SECOND_BATCH_TARGET);
        println!(
            "| {} | {count} | {each:.0} | {size} | {} | {} | {} | {} | {growth} |",
            kind.name(),
            mebibytes(empty),
            mebibytes(first),
            mebibytes(expired),
            mebibytes(second),
        );
        for (verdict, what) in [(size, "session size"), (growth, "growth after expiry")] {
            if verdict == Verdict::Missed {
                missed.push(what.to_owned());
            }
        }
    }
    println!();
    Ok(missed)
}

fn print_streams(binaries: &Binaries, plan: StreamPlan) -> Result<Vec<String>> {
    println!("Standing streams, each on its own connection, held for {:?}.\n", plan.hold);
    println!("| server | stream | streams | bytes each | ours ≤ 24 KiB |\n|---|---|---|---|---|");
    let mut missed = Vec::new();
    for stream in [Stream::LegacyGet, Stream::ModernListen] {
        for kind in binaries.kinds() {
            eprintln!("{}: {} streams, {}", kind.name(), plan.count, stream.name());
            let (before, after) =
                streams::measure(binaries, kind, stream, plan).with_context(|| kind.name())?;
            let each = grown(before, after) / plan.count as f64;
            let size = verdict(kind, each, STREAM_TARGET);
            println!("| {} | {} | {} | {each:.0} | {size} |", kind.name(), stream.name(), plan.count);
            if size == Verdict::Missed {
                missed.push(stream.name().to_owned());
            }
        }
    }
    Ok(missed)
}

/// Gives a server's resident memory once it has come to rest.
fn settled(pid: u32) -> Result<u64> {
    thread::sleep(Duration::from_millis(300));
    resident_bytes(pid)
}

fn verdict(kind: Kind, figure: f64, target: f64) -> Verdict {
    match kind {
        Kind::Ours => Verdict::at_most(figure, target),
        Kind::Bare | Kind::Rmcp => Verdict::NoTarget,
    }
}

fn grown(before: u64, after: u64) -> f64 {
    after.saturating_sub(before) as f64
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / (1024.0 * 1024.0))
}
