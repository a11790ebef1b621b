//! `load hub`: what a call costs that goes through a gateway, ours beside two others, against the direct call.

mod gateway;
mod subject;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use self::gateway::{Gateway, Upstream};
use self::subject::{Round, Running, Subject};
use crate::drive::{Plan, Sample};
use crate::machine;
use crate::servers::Binaries;
use crate::statistics::Spread;
use crate::verdict::Verdict;
use crate::wire::{Era, filler};

/// How much is measured.
#[derive(Args)]
pub(crate) struct HubArguments {
    /// How often each is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How long each is measured with many in flight, and with one, in milliseconds.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    milliseconds: u64,
    /// How many calls are under way at once.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    in_flight: u32,
    /// Only our own gateway, without the others.
    #[arg(long)]
    ours_only: bool,
    /// End with an error when our gateway misses a target.
    #[arg(long)]
    enforce: bool,
}

/// The CPU that our gateway may cost, in exchanges of the limit.
const EXCHANGES: f64 = 2.0;

/// How much later an answer may come than without our gateway, in microseconds.
const LATER: f64 = 60.0;

const BYTES: usize = 16;

/// Measures all gateways in front of each kind of server, for clients of both eras, and prints the table.
pub(crate) fn run(binaries: &Binaries, arguments: &HubArguments) -> Result<()> {
    ensure!(binaries.have_ours(), "our echo example is missing: {}", binaries.ours_path().display());
    let facts = machine::facts();
    println!(
        "A call through a gateway to our echo, {BYTES} B, {} rounds of {} ms in turns; CPU of the gateway process with {} in \
         flight, the median of one in flight; load average {} before.\n",
        arguments.rounds, arguments.milliseconds, arguments.in_flight, facts.load_average
    );
    println!(
        "| server | client | called | CPU, µs | in exchanges | × both sides | behind it, µs | calls/s | median, µs | later, µs | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    for upstream in Upstream::ALL {
        for era in [Era::Legacy, Era::Modern] {
            missed.extend(cell(binaries, arguments, upstream, era)?);
        }
    }
    ensure!(!arguments.enforce || missed.is_empty(), "targets missed: {}", missed.join("; "));
    Ok(())
}

/// What is measured of one subject, or why that is not possible.
type Measured = Result<Vec<Round>>;

/// Measures and prints one kind of server for clients of one era; returns the targets that ours missed.
fn cell(binaries: &Binaries, arguments: &HubArguments, upstream: Upstream, era: Era) -> Result<Vec<String>> {
    let gateways = Gateway::ALL.into_iter().filter(|gateway| match gateway {
        Gateway::Bare => upstream == Upstream::Http,
        Gateway::Ours | Gateway::Released => true,
        Gateway::McpProxy | Gateway::FastMcp => !arguments.ours_only,
    });
    let subjects: Vec<Subject> =
        [Subject::Bare, Subject::Direct].into_iter().chain(gateways.map(Subject::Through)).collect();
    let measured = measure(binaries, arguments, upstream, era, &subjects)?;
    let of = |wanted: Subject| {
        let at = subjects.iter().position(|subject| *subject == wanted);
        let measured = at.and_then(|at| measured.get(at)).context("it was not asked for")?;
        measured.as_ref().map_err(|error| anyhow::anyhow!("{}: {error:#}", wanted.name()))
    };
    let (bare, direct) = (of(Subject::Bare)?, of(Subject::Direct)?);
    let both_sides = of(Subject::Through(Gateway::Bare)).ok();
    let besides = Besides { bare, both_sides: both_sides.map(Vec::as_slice), direct };
    let mut missed = Vec::new();
    for (subject, rounds) in subjects.iter().zip(&measured) {
        let place = format!("| {} | {} | {}", upstream.name(), era.revision(), subject.name());
        let rounds = match rounds {
            Ok(rounds) => rounds,
            Err(error) => {
                println!("{place} | not possible: {error:#} | | | | | | | |");
                continue;
            }
        };
        let row = Row::of(rounds, besides)?;
        let verdict = match subject {
            Subject::Through(Gateway::Ours | Gateway::Released) => {
                let cpu = Verdict::at_most(row.exchanges.median, EXCHANGES);
                let later = Verdict::at_most(row.later.median, LATER);
                if cpu == Verdict::Missed || later == Verdict::Missed {
                    missed.push(format!(
                        "{}, {} behind a client of {}",
                        subject.name(),
                        upstream.name(),
                        era.revision()
                    ));
                }
                format!("CPU {cpu}, time {later}")
            }
            _ => String::new(),
        };
        println!("{place} | {row} | {verdict} |");
    }
    Ok(missed)
}

/// Has all subjects take turns. One that fails is left out from then on, and its reason stands in its row.
fn measure(
    binaries: &Binaries,
    arguments: &HubArguments,
    upstream: Upstream,
    era: Era,
    subjects: &[Subject],
) -> Result<Vec<Measured>> {
    let folder = std::env::temp_dir().join(format!("load-hub-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
    let measured = Duration::from_millis(arguments.milliseconds);
    let plan = Plan { warm_up: measured / 4, measured };
    let (text, in_flight) = (filler(BYTES), arguments.in_flight as usize);
    let mut running: Vec<Result<(Running, Vec<Round>)>> = subjects
        .iter()
        .map(|subject| Ok((Running::start(binaries, *subject, upstream, era, &folder)?, Vec::new())))
        .collect();
    for number in 0..arguments.rounds {
        eprintln!("{} behind {}, round {}", upstream.name(), era.revision(), number + 1);
        let mut order: Vec<_> = running.iter_mut().collect();
        // The order turns round each time, so that a drift of the machine favours none.
        if number % 2 == 1 {
            order.reverse();
        }
        for subject in order {
            let Ok((server, rounds)) = subject else { continue };
            match server.measure(era, &text, in_flight, plan) {
                Ok(round) => rounds.push(round),
                Err(error) => *subject = Err(error),
            }
        }
    }
    drop(std::fs::remove_dir_all(&folder));
    Ok(running.into_iter().map(|subject| subject.map(|(_, rounds)| rounds)).collect())
}

/// What the figures of a subject are held against.
#[derive(Clone, Copy)]
struct Besides<'a> {
    bare: &'a [Round],
    both_sides: Option<&'a [Round]>,
    direct: &'a [Round],
}

/// The figures of one subject.
struct Row {
    cpu: Spread,
    exchanges: Spread,
    /// Only where both sides are HTTP, and that was measured.
    both_sides: Option<Spread>,
    behind: Spread,
    rate: Spread,
    median: Spread,
    later: Spread,
}

impl Row {
    /// Ratios and differences are taken within a round.
    fn of(rounds: &[Round], Besides { bare, both_sides, direct }: Besides<'_>) -> Result<Self> {
        let spread = |figure: &dyn Fn(usize, &Round) -> Option<f64>| {
            Spread::of(rounds.iter().enumerate().filter_map(|(at, round)| figure(at, round)))
                .context("nothing was measured")
        };
        let many = |figure: fn(&Sample) -> f64| spread(&|_, round| Some(figure(&round.many)));
        let times = |others: &[Round]| {
            spread(&|at, round| Some(round.many.cpu_microseconds() / others.get(at)?.many.cpu_microseconds()))
        };
        Ok(Self {
            cpu: many(Sample::cpu_microseconds)?,
            exchanges: times(bare)?,
            both_sides: both_sides.map(times).transpose()?,
            behind: many(Sample::behind_cpu_microseconds)?,
            rate: many(Sample::requests_per_second)?,
            median: spread(&|_, round| Some(round.median))?,
            later: spread(&|at, round| Some(round.median - direct.get(at)?.median))?,
        })
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cpu, exchanges, both_sides, behind, rate, median, later } = self;
        write!(
            f,
            "{:.1} | {:.2} ({:.2}–{:.2}) | {} | {:.1} | {:.0} | {:.0} | {:.0} ({:.0}–{:.0})",
            cpu.median,
            exchanges.median,
            exchanges.least,
            exchanges.most,
            both_sides.map_or_else(String::new, |times| format!("{:.2}", times.median)),
            behind.median,
            rate.median,
            median.median,
            later.median,
            later.least,
            later.most
        )
    }
}
