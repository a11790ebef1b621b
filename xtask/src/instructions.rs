//! `cargo xtask instructions`: what a call costs in instructions, held against what it cost before.
//!
//! Times on a shared machine cannot show a change below a tenth; instructions repeat to within a per cent or two.

use std::ffi::OsStr;

use crate::args::Args;
use crate::{TaskResult, run};

/// What the counts are held against; `--save` makes it anew.
const BASELINE: &str = "bench/instructions.json";

/// How much more is let through, in per cent: more than another C library or processor makes out.
const TOLERANCE: &str = "8";

pub(crate) fn command(mut args: Args) -> TaskResult {
    let save = args.flag("--save");
    args.finish()?;
    install_valgrind()?;
    run::run(run::cargo().args(["build", "--release", "--package", "trunkline", "--example", "echo"]))?;
    run::run(run::cargo().args([
        "build",
        "--release",
        "--manifest-path",
        "bench/Cargo.toml",
        "--package",
        "load",
    ]))?;
    let mut load = run::command("bench/target/release/load");
    load.args(["--require-ours", "instructions", "--ours-only"]);
    let goal: [&OsStr; 2] = [if save { "--save" } else { "--check" }.as_ref(), BASELINE.as_ref()];
    run::run(load.args(goal).args(["--tolerance", TOLERANCE]))
}

fn install_valgrind() -> TaskResult {
    if run::output(run::command("valgrind").arg("--version")).is_ok() {
        return Ok(());
    }
    run::run(run::command("apt-get").args(["install", "--yes", "--quiet", "valgrind"])).map_err(|error| {
        format!("instructions are counted with valgrind, which cannot be installed: {error}").into()
    })
}
