//! `load client`: what a call costs the client, ours beside rmcp's, against our echo server.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::servers::{Binaries, HttpServer, Kind, Launch};
use crate::statistics::Spread;
use crate::verdict::Verdict;

/// How much is measured.
#[derive(Args)]
pub(crate) struct ClientArguments {
    /// How often each client is run.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// How many calls a client makes in each run.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..))]
    calls: u32,
    /// How many calls are under way at once.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    in_flight: u32,
    /// End with an error when our client misses the target.
    #[arg(long)]
    enforce: bool,
}

/// Ours may cost this much of what rmcp's costs.
const TARGET: f64 = 0.5;

/// A client, and its revision.
#[derive(Clone, Copy)]
struct Subject {
    program: &'static str,
    revision: &'static str,
}

/// The first is what the others are compared with.
const SUBJECTS: [Subject; 3] = [
    Subject { program: "client-rmcp", revision: "2025-11-25" },
    Subject { program: "client-ours", revision: "2025-11-25" },
    Subject { program: "client-ours", revision: "2026-07-28" },
];

/// Runs the clients in turns over each transport and prints the table.
pub(crate) fn run(binaries: &Binaries, arguments: &ClientArguments) -> Result<()> {
    ensure!(binaries.have_ours(), "our echo example is missing: {}", binaries.ours_path().display());
    println!(
        "CPU of the client per call, {} in flight, {} runs of {} calls each, in turns; the server is our echo.\n",
        arguments.in_flight, arguments.rounds, arguments.calls
    );
    println!(
        "| transport | client | revision | µs | of rmcp's | ours ≤ {TARGET} |\n|---|---|---|---|---|---|"
    );
    let mut missed = Vec::new();
    for transport in ["http", "stdio"] {
        let rounds = measure(binaries, transport, arguments).with_context(|| transport.to_owned())?;
        for (at, subject) in SUBJECTS.iter().enumerate() {
            let of = |round: &[f64; SUBJECTS.len()]| round.get(at).copied().unwrap_or(f64::NAN);
            let cost = Spread::of(rounds.iter().map(of)).context("nothing was measured")?;
            // Within one round, so that a drift of the machine favours none.
            let ratio = Spread::of(rounds.iter().map(|round| of(round) / round[0])).context("nothing")?;
            let verdict = if at == 0 { Verdict::NoTarget } else { Verdict::at_most(ratio.median, TARGET) };
            println!(
                "| {transport} | {} | {} | {:.2} | {:.2} ({:.2}–{:.2}) | {verdict} |",
                subject.program,
                subject.revision,
                cost.median / 1e3,
                ratio.median,
                ratio.least,
                ratio.most
            );
            if verdict == Verdict::Missed {
                missed.push(format!("{transport} at {}", subject.revision));
            }
        }
    }
    ensure!(!arguments.enforce || missed.is_empty(), "our client costs too much: {}", missed.join(", "));
    Ok(())
}

/// Measures all clients, round by round, in nanoseconds.
fn measure(
    binaries: &Binaries,
    transport: &str,
    arguments: &ClientArguments,
) -> Result<Vec<[f64; SUBJECTS.len()]>> {
    let server = match transport {
        "http" => Some(HttpServer::start(binaries, Kind::Ours, &Launch::default())?),
        _ => None,
    };
    let mut rounds = Vec::new();
    for _ in 0..arguments.rounds {
        let mut round = [0.0; SUBJECTS.len()];
        for (cost, subject) in round.iter_mut().zip(SUBJECTS) {
            let mut command = Command::new(binaries.beside(subject.program)?);
            command.args(["--revision", subject.revision]);
            command.args(["--calls", &arguments.calls.to_string()]);
            command.args(["--in-flight", &arguments.in_flight.to_string()]);
            match &server {
                Some(server) => command.args(["--http", &format!("http://{}/mcp", server.address())]),
                // The client starts its server itself, and would have it on its own core.
                None => {
                    command.args(["--stdio", "taskset", "-c", "0"]).arg(binaries.ours_path()).arg("--stdio")
                }
            };
            *cost = cost_of(command).with_context(|| subject.program)?;
        }
        rounds.push(round);
    }
    Ok(rounds)
}

/// Runs a client and reads the one number that it prints.
fn cost_of(mut command: Command) -> Result<f64> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "it ended with {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    text.trim().parse().with_context(|| format!("it printed `{}`", text.trim()))
}
