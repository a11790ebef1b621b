//! Twenty anonymous clients of both eras call servers through a hub, and each checks that nothing of another reaches it.
//!
//! `cargo xtask isolation` starts the hub and runs this:
//!
//! ```text
//! isolation --url URL --calls NUMBER (--local | --strangers) --scratch DIR --servers NAME,NAME...
//! ```
//!
//! On the loopback all clients are one user: they may share a process and its state. Strangers may not.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what is printed is the whole purpose")]

mod client;
mod findings;
mod options;
mod own_messages;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::{CALLS_PER_PROCESS, ExaminedClient, is_recognised};
use crate::findings::Findings;
use crate::options::IsolationOptions;

const CLIENTS: usize = 20;

/// A run in which no call is answered for so long has failed.
const STALL: Duration = Duration::from_secs(180);

/// Returns how many calls each client makes: a stranger that is not recognised from one call to the next makes few, since
/// each starts a process.
fn calls_of_each(options: &IsolationOptions) -> Vec<u64> {
    let weight = |number| match options.is_shared || is_recognised(number) {
        true => CALLS_PER_PROCESS,
        false => 1,
    };
    let total: u64 = (0..CLIENTS).map(weight).sum();
    (0..CLIENTS).map(|number| (options.calls * weight(number)).div_ceil(total)).collect()
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = match IsolationOptions::read(std::env::args().skip(1)) {
        Ok(options) => Arc::new(options),
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let (findings, began) = (Arc::new(Findings::default()), Instant::now());
    let mut running = Vec::new();
    for (number, calls) in calls_of_each(&options).into_iter().enumerate() {
        match ExaminedClient::connect(number, options.clone(), findings.clone()).await {
            Ok(client) => running.push(tokio::spawn(client.run(calls))),
            Err(problem) => findings.record(format!("client {number} cannot connect: {problem}")),
        }
    }
    let finished = async {
        for client in &mut running {
            if let Err(problem) = client.await {
                findings.record(problem.to_string());
            }
        }
    };
    tokio::select! {
        () = finished => {}
        () = stalled(&findings) => eprintln!("no call was answered for {} s", STALL.as_secs()),
    }
    let wanted = calls_of_each(&options).iter().sum();
    findings.print(options.is_shared, wanted, began.elapsed())
}

/// Prints the counts now and then, so that a long run shows how far it is; returns once no more calls are answered.
async fn stalled(findings: &Findings) {
    let (mut answered, mut since) = (0, Instant::now());
    while since.elapsed() < STALL {
        tokio::time::sleep(Duration::from_secs(30)).await;
        eprintln!("{}", findings.counts());
        let now = findings.answered_calls();
        if now != answered {
            (answered, since) = (now, Instant::now());
        }
    }
}
