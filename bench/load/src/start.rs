//! `load start`: how soon after its start a stdio server has answered.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::servers::{Binaries, Kind, Launch, StdioServer};
use crate::statistics::Spread;
use crate::verdict::Verdict;
use crate::wire::{Call, Era, FIRST_ID};

/// How often each server is started.
#[derive(Args)]
pub(crate) struct StartArguments {
    /// Starts of each server for each kind of first message.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    times: u32,
    /// End with an error when our server misses the target.
    #[arg(long)]
    enforce: bool,
}

const TARGET_MILLISECONDS: f64 = 2.0;

/// The first message that a server gets.
#[derive(Clone, Copy)]
enum First {
    Initialize,
    ModernCall,
}

/// Measures from before the process is created to the answer, so the kernel's own work is included.
pub(crate) fn run(binaries: &Binaries, arguments: &StartArguments) -> Result<()> {
    println!("Time from spawn to the first answer on stdio, {} starts of each, in turns.\n", arguments.times);
    println!(
        "| server | first message | median ms | least–most ms | ours ≤ {TARGET_MILLISECONDS} ms |\n|---|---|---|---|---|"
    );
    let mut missed = Vec::new();
    for first in [First::Initialize, First::ModernCall] {
        let mut series: Vec<(Kind, Vec<f64>)> =
            binaries.kinds().into_iter().map(|kind| (kind, Vec::new())).collect();
        for _ in 0..arguments.times {
            for (kind, figures) in &mut series {
                let took = first_answer(binaries, *kind, first).with_context(|| kind.name())?;
                figures.push(took.as_secs_f64() * 1e3);
            }
        }
        for (kind, figures) in series {
            let Spread { median, least, most } = Spread::of(figures).context("no start was measured")?;
            let verdict = match kind {
                Kind::Ours => Verdict::at_most(median, TARGET_MILLISECONDS),
                Kind::Bare | Kind::Rmcp => Verdict::NoTarget,
            };
            println!(
                "| {} | {} | {median:.2} | {least:.2}–{most:.2} | {verdict} |",
                kind.name(),
                first.name()
            );
            if verdict == Verdict::Missed {
                missed.push(first.name());
            }
        }
    }
    ensure!(!arguments.enforce || missed.is_empty(), "the first answer is too late: {}", missed.join(", "));
    Ok(())
}

fn first_answer(binaries: &Binaries, kind: Kind, first: First) -> Result<Duration> {
    let mut call = Call::line(Era::Modern, "first")?;
    let started = Instant::now();
    let mut server = StdioServer::start(binaries, kind, &Launch::default())?;
    match first {
        First::Initialize => server.initialize()?,
        First::ModernCall => server.call(&mut call, FIRST_ID, "first")?,
    }
    Ok(started.elapsed())
}

impl First {
    const fn name(self) -> &'static str {
        match self {
            Self::Initialize => "initialize (legacy)",
            Self::ModernCall => "tools/call (modern)",
        }
    }
}
