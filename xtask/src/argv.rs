//! `cargo xtask argv`: the campaign of random programs that must parse each call exactly.

use crate::args::Args;
use crate::{TaskResult, run};

/// How many sets of arguments are tried by default.
const CALLS: usize = 1_000_000;

pub(crate) fn command(mut args: Args) -> TaskResult {
    let calls = args.number().unwrap_or(CALLS);
    args.finish()?;
    let campaign = "million_built_argvs_parse_back_or_are_rejected";
    let test = ["test", "--package", "trunkline-commands", "--test", "tree", "--", "--ignored", "--exact"];
    run::run(
        run::cargo()
            .args(test)
            .arg(format!("round_trip::{campaign}"))
            .env("TRUNKLINE_CALLS", calls.to_string()),
    )
}
