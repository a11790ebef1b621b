//! `cargo xtask soak`: campaigns of hostile peers against a real process, each with its figures.
//!
//! The server is a release build in a process of its own. Every campaign prints a table of what was done and what it cost,
//! and fails if the server does not serve a well-behaved client at the end.

mod cancel;
mod malformed;
mod mutate;
mod sessions;
mod slow_readers;
mod streams;
mod target;
mod wire;

use crate::TaskResult;
use crate::args::Args;

type SoakCampaign = fn(usize) -> TaskResult;

/// The campaigns by name, each with its default number.
const CAMPAIGNS: &[(&str, usize, SoakCampaign)] = &[
    ("sessions", 10_000, sessions::campaign),
    ("streams", 1_000, streams::campaign),
    ("slow-readers", 300, slow_readers::campaign),
    ("malformed", 20_000, malformed::campaign),
    ("cancel", 10_000, cancel::campaign),
];

pub(crate) fn command(mut args: Args) -> TaskResult {
    let names: Vec<&str> = CAMPAIGNS.iter().map(|(name, _, _)| *name).collect();
    let chosen = args.choice(&names).ok_or_else(|| format!("name a campaign: {}", names.join(", ")))?;
    let number = args.number();
    args.finish()?;
    let campaign = CAMPAIGNS.iter().find(|(name, _, _)| *name == chosen);
    let (_, usual, run) = campaign.ok_or("there is no such campaign")?;
    run(number.unwrap_or(*usual))
}
