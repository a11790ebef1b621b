//! `cargo xtask faults`: what is done to a hub under load, at full length; in small, the tests do the same.

use crate::args::Args;
use crate::{TaskResult, run};

const CAMPAIGNS: &[&str] = &["kills", "restarts", "toggles", "crowd", "all"];

pub(crate) fn command(mut args: Args) -> TaskResult {
    let chosen = args.choice(CAMPAIGNS).unwrap_or_else(|| "all".to_owned());
    let number = args.number().map(|number| format!(" {number}")).unwrap_or_default();
    let is_quick = args.flag("--quick");
    args.finish()?;
    let mut cargo = run::cargo();
    cargo.args(["test", "--package", "trunkline-hub", "--test", "faults"]);
    if !is_quick {
        cargo.arg("--release");
    }
    let length = if is_quick { "" } else { " --full" };
    run::run(cargo.env("FAULTS", format!("{chosen}{number}{length}")))
}
