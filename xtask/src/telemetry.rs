//! `cargo xtask telemetry`: the traces and metrics of a hub at a real collector.

use crate::args::Args;
use crate::{TaskResult, run, tools};

pub(crate) fn command(args: Args) -> TaskResult {
    args.finish()?;
    let collector = tools::install_collector()?;
    let mut test = run::cargo();
    test.args([
        "test",
        "--locked",
        "--package",
        "trunkline-cli",
        "--test",
        "cli",
        "--",
        "--ignored",
        "rotel_",
    ]);
    run::run(test.env("TRUNKLINE_ROTEL", collector))
}
