//! `load auth`: what a valid access token costs, against the anonymous call: as a bearer token and bound by DPoP, on ours
//! and, where it can do the same, on rmcp.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::drive::{Plan, Window, drive_http};
use crate::issuer::{Issuer, RESOURCE};
use crate::servers::{Binaries, HttpServer, Kind, Launch};
use crate::statistics::Spread;
use crate::wire::{Era, Place, ProofKey, filler};

/// The most that a call with a token may cost, in calls without one.
const TARGET: f64 = 1.15;

/// How much is measured.
#[derive(Args)]
pub(crate) struct AuthArguments {
    /// How many rounds, each with one stretch of every server.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long one stretch is, in milliseconds.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(100..))]
    milliseconds: u64,
    /// End with an error when the target is missed.
    #[arg(long)]
    enforce: bool,
}

/// A server, and how its clients authenticate themselves.
struct Subject {
    name: &'static str,
    server: HttpServer,
    authorization: Option<&'static str>,
    proof_key: Option<&'static ProofKey>,
}

/// A ratio to report: that of one subject to another, and the most that it may be.
struct Comparison {
    of: usize,
    to: usize,
    target: Option<f64>,
}

/// Measures all servers in turn and prints the table.
pub(crate) fn run(binaries: &Binaries, arguments: &AuthArguments) -> Result<()> {
    ensure!(binaries.have_ours(), "our echo example is missing: {}", binaries.ours_path().display());
    let issuer = Issuer::start()?;
    let (subjects, comparisons) = subjects(binaries, &issuer)?;
    let measured = Duration::from_millis(arguments.milliseconds);
    let plan = Plan { warm_up: Duration::from_millis(150), measured };
    println!("CPU of a call of 16 B with 32 connections, by how its client is authenticated.\n");
    println!("| revision | call | CPU | against | ratio (least–most) | target |");
    println!("|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    for era in [Era::Legacy, Era::Modern] {
        let costs = measure(&subjects, era, plan, arguments.rounds)?;
        for (subject, costs) in
            subjects.iter().zip(&costs).filter(|(subject, _)| subject.authorization.is_none())
        {
            let cost = Spread::of(costs.iter().copied()).context("no round")?;
            println!("| {} | {} | {:.2} µs | | | |", era.revision(), subject.name, cost.median);
        }
        for comparison in &comparisons {
            if print_ratio(era, comparison, &subjects, &costs)? {
                missed.push(era.revision());
            }
        }
    }
    for subject in subjects {
        subject.server.end()?;
    }
    ensure!(!arguments.enforce || missed.is_empty(), "target missed: {}", missed.join(", "));
    Ok(())
}

/// Starts the servers, and returns what to compare.
fn subjects(binaries: &Binaries, issuer: &Issuer) -> Result<(Vec<Subject>, Vec<Comparison>)> {
    let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let key = ProofKey::generate(RESOURCE)?;
    let bound = issuer.token(Some(key.thumbprint()))?;
    let key: &'static ProofKey = Box::leak(Box::new(key.for_token(&bound)));
    let bearer = leaked(format!("Bearer {}", issuer.token(None)?));
    let dpop = leaked(format!("DPoP {bound}"));
    let (open, protected) = (Launch::default(), Launch { issuer: Some(issuer.url()), ..Launch::default() });
    let start = |name, kind, authorization: Option<&'static str>, proof_key| -> Result<Subject> {
        let launch = if authorization.is_some() { &protected } else { &open };
        Ok(Subject { name, server: HttpServer::start(binaries, kind, launch)?, authorization, proof_key })
    };
    let subjects = vec![
        start("anonymous", Kind::Ours, None, None)?,
        start("JWT", Kind::Ours, Some(bearer), None)?,
        start("JWT with a DPoP proof", Kind::Ours, Some(dpop), Some(key))?,
        start("anonymous, rmcp", Kind::Rmcp, None, None)?,
        // rmcp has no verification of its own: it is that of the crate `jsonwebtoken` in a layer of axum.
        start("JWT, rmcp", Kind::Rmcp, Some(bearer), None)?,
    ];
    let comparisons = vec![
        Comparison { of: 1, to: 0, target: Some(TARGET) },
        Comparison { of: 2, to: 0, target: None },
        Comparison { of: 2, to: 1, target: None },
        Comparison { of: 4, to: 3, target: None },
        Comparison { of: 4, to: 1, target: None },
    ];
    Ok((subjects, comparisons))
}

/// Measures every subject once in each round; returns the costs of each.
fn measure(subjects: &[Subject], era: Era, plan: Plan, rounds: u32) -> Result<Vec<Vec<f64>>> {
    let mut costs = vec![Vec::new(); subjects.len()];
    for round in 0..rounds {
        let mut turn: Vec<(&Subject, &mut Vec<f64>)> = subjects.iter().zip(&mut costs).collect();
        // The order turns round each time, so that a drift of the machine favours none.
        if round % 2 == 1 {
            turn.reverse();
        }
        for (subject, costs) in turn {
            let place = Place {
                authorization: subject.authorization,
                proof_key: subject.proof_key,
                ..subject.server.address().into()
            };
            let window = Window::new(subject.server.id(), plan);
            costs.push(drive_http(place, era, &filler(16), 32, window)?.cpu_microseconds());
        }
    }
    Ok(costs)
}

/// Prints one row, and reports whether its target is missed.
fn print_ratio(era: Era, comparison: &Comparison, subjects: &[Subject], costs: &[Vec<f64>]) -> Result<bool> {
    let of = |at: usize| subjects.get(at).zip(costs.get(at)).context("no such subject");
    let ((subject, cost), (other, reference)) = (of(comparison.of)?, of(comparison.to)?);
    let ratio = Spread::of(cost.iter().zip(reference).map(|(cost, reference)| cost / reference));
    let (ratio, cost) = (ratio.context("no round")?, Spread::of(cost.iter().copied()).context("no round")?);
    println!(
        "| {} | {} | {:.2} µs | {} | {:.2} ({:.2}–{:.2}) | {} |",
        era.revision(),
        subject.name,
        cost.median,
        other.name,
        ratio.median,
        ratio.least,
        ratio.most,
        comparison.target.map(|target| target.to_string()).unwrap_or_default(),
    );
    Ok(comparison.target.is_some_and(|target| ratio.median > target))
}
