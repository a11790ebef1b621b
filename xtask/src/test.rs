//! `cargo xtask test`: every step that a change has to pass, in order.

use std::time::Instant;

use crate::args::Args;
use crate::table::TextTable;
use crate::{
    TaskResult, browser, conformance, console, instructions, interop, keychain, matrix, replicas, root, run,
    telemetry,
};

type TestStep = fn() -> TaskResult;

/// The steps by name; the cheap ones come first.
const STEPS: &[(&str, TestStep)] = &[
    ("fmt", || cargo(&["fmt", "--all", "--check"])),
    ("clippy", clippy),
    ("docs", docs),
    ("test", || cargo(&["test", "--locked", "--workspace", "--no-fail-fast"])),
    ("fuzz", || cargo_in("test", "fuzz/Cargo.toml")),
    ("borrowed", || cargo_in("test", "examples/borrowed/Cargo.toml")),
    ("sqlite", || cargo_in("test", "examples/sqlite/Cargo.toml")),
    ("bench", || cargo_in("check", "bench/Cargo.toml")),
    ("instructions", || instructions::command(no_options())),
    ("conformance", || conformance::command(no_options())),
    ("interop", || interop::command(no_options())),
    ("replicas", replicas::short),
    ("smoke", || interop::smoke::command(no_options())),
    ("matrix", || matrix::command(Args::new(["--check".to_owned()].into_iter()))),
    ("browser", || browser::command(no_options())),
    ("console", || console::command(no_options())),
    ("keychain", || keychain::command(no_options())),
    ("telemetry", || telemetry::command(no_options())),
];

pub(crate) fn command(mut args: Args) -> TaskResult {
    let only = args.values("--only")?;
    let skip = args.values("--skip")?;
    args.finish()?;
    let chosen = choose(&only, &skip)?;
    let mut table = TextTable::new(&["step", "seconds", "result"]);
    let mut failed = Vec::new();
    // A failed step does not stop the ones after it: one run shows everything that is wrong.
    for (name, step) in STEPS.iter().filter(|(name, _)| chosen.contains(name)) {
        println!("== {name}");
        let started = Instant::now();
        let outcome = step();
        let seconds = format!("{:.1}", started.elapsed().as_secs_f64());
        let result = if outcome.is_ok() { "passed" } else { "FAILED" };
        println!("== {name} {result} after {seconds} s");
        if let Err(error) = outcome {
            println!("{error}");
            failed.push(*name);
        }
        table.row(vec![(*name).to_owned(), seconds, result.to_owned()]);
    }
    print!("\n{}", table.render());
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

/// Gives the names of the steps to run, and refuses a name that no step has.
fn choose(only: &[String], skip: &[String]) -> TaskResult<Vec<&'static str>> {
    let names: Vec<&'static str> = STEPS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = only.iter().chain(skip).find(|asked| !names.contains(&asked.as_str())) {
        return Err(format!("there is no step `{unknown}`; the steps are {}", names.join(", ")).into());
    }
    let listed = |list: &[String], name: &str| list.iter().any(|asked| asked == name);
    Ok(names
        .into_iter()
        .filter(|name| (only.is_empty() || listed(only, name)) && !listed(skip, name))
        .collect())
}

fn cargo(arguments: &[&str]) -> TaskResult {
    run::run(run::cargo().args(arguments))
}

/// Runs a command of cargo in a workspace beside ours; what both need is built once.
fn cargo_in(command: &str, manifest: &str) -> TaskResult {
    let mut cargo = run::cargo();
    cargo
        .args([command, "--locked", "--manifest-path", manifest])
        .env("CARGO_TARGET_DIR", root().join("target"));
    run::run(&mut cargo)
}

/// Checks everything with the features that are off by default; the tests are built without them.
fn clippy() -> TaskResult {
    let features = ["--features", "trunkline-cli/keychain"];
    let checked = ["clippy", "--locked", "--workspace", "--all-targets"];
    cargo(&[&checked[..], &features, &["--", "-D", "warnings"]].concat())
}

fn docs() -> TaskResult {
    run::run(run::cargo().args(["doc", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "-D warnings"))
}

fn no_options() -> Args {
    Args::new(std::iter::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(only: &[&str], skip: &[&str]) -> TaskResult<String> {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        Ok(choose(&owned(only), &owned(skip))?.join(" "))
    }

    #[test]
    fn steps_are_chosen_by_name_and_keep_their_order() {
        let all = "fmt clippy docs test fuzz borrowed sqlite bench instructions conformance interop replicas smoke matrix browser console keychain telemetry";
        assert_eq!(chosen(&[], &[]).unwrap(), all);
        assert_eq!(chosen(&["test", "fmt"], &[]).unwrap(), "fmt test");
        assert_eq!(
            chosen(&[], &["fuzz", "bench", "docs"]).unwrap(),
            "fmt clippy test borrowed sqlite instructions conformance interop replicas smoke matrix browser console keychain telemetry"
        );
        assert_eq!(chosen(&["fmt", "test"], &["test"]).unwrap(), "fmt");
    }

    #[test]
    fn unknown_step_is_refused() {
        assert!(chosen(&["tset"], &[]).is_err());
        assert!(chosen(&[], &["tset"]).is_err());
    }
}
