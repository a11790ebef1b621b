//! `cargo xtask crashes`: processes with a session store in a file are killed at many points under load; the tests do the
//! same a few times.

use crate::args::Args;
use crate::{TaskResult, run};

/// How often a process is killed by default: twice for each point.
const POINTS: u64 = 500;

pub(crate) fn command(mut args: Args) -> TaskResult {
    let points = args.number().map_or(POINTS, |points| points as u64);
    args.finish()?;
    let mut cargo = run::cargo();
    cargo.args(["test", "--package", "trunkline-store-file", "--test", "store"]);
    cargo.args(["acknowledged_changes_survive_a_killed_process", "--", "--nocapture"]);
    run::run(cargo.env("CRASH_POINTS", points.to_string()))
}
