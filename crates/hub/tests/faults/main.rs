//! Faults, as campaigns against a real hub in a process of its own, with real servers in processes of theirs.
//!
//! Every call has to end once, at its own caller, with its own response or an error that names the cause; when all is
//! over, the hub holds what it held before: no process, no zombie, no descriptor and no task more, and no memory beyond a
//! bound. As a test each campaign is small; `cargo xtask faults` runs the same at full length.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "this is a test, without a harness that would say so, and it starts and kills programs"
)]

mod client;
mod crowd;
mod hub;
mod hub_driver;
mod kills;
mod load;
mod process;
mod restarts;
mod toggles;
mod upstream;

use std::time::{Duration, Instant};

use crate::hub_driver::HubDriver;
use crate::load::CallTally;

/// Longer than anything here takes, and only ever waited for by a campaign that fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a campaign did, and what came of the calls meanwhile.
pub(crate) struct CampaignReport {
    /// What was done to the hub or its servers, for the table.
    pub(crate) faults: String,
    pub(crate) tally: CallTally,
}

type Campaign = fn(&HubDriver, usize) -> CampaignReport;

/// The campaigns: what each is called, its number as a test, its number at full length, and what is counted.
const CAMPAIGNS: [(&str, usize, usize, Campaign); 4] = [
    ("kills", 60, 10_000, kills::campaign),
    ("restarts", 24, 2_000, restarts::campaign),
    ("toggles", 400, 60_000, toggles::campaign),
    ("crowd", 2_560, 1_000_000, crowd::campaign),
];

/// Which campaigns run, and how long: `kills`, `all --full`, `crowd 100000`. As a test, all of them in their small form.
const CHOICE: &str = "FAULTS";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["upstream", options @ ..] => return upstream::main(options),
        ["hub", address] => return hub::main(address),
        _ => {}
    }
    let choice = std::env::var(CHOICE).unwrap_or_default();
    let mut words: Vec<&str> = choice.split_whitespace().collect();
    let is_full = words.iter().position(|word| *word == "--full").map(|at| words.remove(at)).is_some();
    let name = words.first().copied().unwrap_or("all");
    let number = words.get(1).map(|number| number.replace('_', "").parse::<usize>().unwrap());
    let chosen: Vec<_> = CAMPAIGNS.iter().filter(|(known, ..)| name == "all" || name == *known).collect();
    assert!(!chosen.is_empty(), "there is no campaign `{name}`");
    println!("| campaign | done | calls | answered | refused, and why | seconds | hub before | hub after |");
    println!("|---|---|---|---|---|---|---|---|");
    for (name, small, full, campaign) in chosen {
        let number = number.unwrap_or(if is_full { *full } else { *small });
        run(name, number, *campaign);
    }
}

/// Runs one campaign against a hub of its own, and holds it to what every campaign has to keep.
fn run(name: &str, number: usize, campaign: Campaign) {
    let began = Instant::now();
    let steward = HubDriver::start();
    // Once in small, for what is made once and kept: threads, the guard of children, the allocator's arenas.
    campaign(&steward, number.div_ceil(10));
    steward.set(&[]);
    let before = steward.settled(None);
    let CampaignReport { faults, tally } = campaign(&steward, number);
    steward.set(&[]);
    let after = steward.settled(Some(before));
    assert!(tally.wrong.is_empty(), "{name}: {:#?}", tally.wrong);
    assert!(tally.answered > 0, "{name}: not one call was answered");
    println!(
        "| {name} | {faults} | {} | {} | {} | {:.1} | {before} | {after} |",
        tally.calls(),
        tally.answered,
        tally.reasons(),
        began.elapsed().as_secs_f64(),
    );
    steward.end();
}
