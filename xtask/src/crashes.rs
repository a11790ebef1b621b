//! `cargo xtask crashes`: hubs and processes with a session store in a file are killed at many points under load; the tests
//! do the same a few times.

use crate::args::Args;
use crate::{TaskResult, run};

/// How often each is killed by default.
const POINTS: u64 = 500;

/// The tests that read the number of points from the environment: of the store alone, and of a hub over HTTP.
const CAMPAIGNS: [(&str, &str, &str); 2] = [
    ("trunkline-store-file", "store", "acknowledged_changes_survive_a_killed_process"),
    ("trunkline-cli", "cli", "acknowledged_sessions_answer_after_kills_under_load"),
];

pub(crate) fn command(mut args: Args) -> TaskResult {
    let points = args.number().map_or(POINTS, |points| points as u64);
    args.finish()?;
    for (package, target, test) in CAMPAIGNS {
        let mut cargo = run::cargo();
        cargo.args(["test", "--package", package, "--test", target, test, "--", "--nocapture"]);
        run::run(cargo.env("CRASH_POINTS", points.to_string()))?;
    }
    Ok(())
}
