//! `cargo xtask platforms`: what people install compiles where we do not run it: for other systems, and with the oldest
//! compiler that we promise.
//!
//! Types and lints are checked, and nothing is linked: that would need the linker and the libraries of each system.

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::{TaskResult, fixture, run};

/// One target for each family of systems, and each processor of macOS, of which both are in use.
const TARGETS: &[&str] =
    &["aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-pc-windows-gnu", "aarch64-unknown-linux-gnu"];

/// The binary, the library and the commands made from a clap tree. Tests and fixtures are for Linux.
const PACKAGES: &[&str] = &["trunkline-cli", "trunkline", "trunkline-commands"];

/// Stands in for a C compiler and an archiver: every output is an empty file, since nothing is linked.
const NO_COMPILER: &str = "\
#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
        -o) : > \"$2\"; shift ;;
        *.a | *.lib) : > \"$1\" ;;
    esac
    shift
done
";

pub(crate) fn command(mut args: Args) -> TaskResult {
    let only = args.values("--only")?;
    args.finish()?;
    if let Some(unknown) = only.iter().find(|asked| !TARGETS.contains(&asked.as_str())) {
        return Err(format!("`{unknown}` is not checked; the targets are {}", TARGETS.join(", ")).into());
    }
    if only.is_empty() {
        check_with_oldest_compiler()?;
    }
    let compiler = pretend_compiler()?;
    for target in TARGETS.iter().filter(|target| only.is_empty() || only.iter().any(|asked| asked == *target))
    {
        println!("== {target}");
        run::run(run::command("rustup").args(["target", "add", target]))
            .map_err(|error| format!("the standard library for {target} is needed: {error}"))?;
        check(target, &compiler)?;
    }
    Ok(())
}

/// Checks the whole workspace with the `rust-version` of its `Cargo.toml`.
fn check_with_oldest_compiler() -> TaskResult {
    let oldest = env!("CARGO_PKG_RUST_VERSION");
    println!("== Rust {oldest}");
    run::run(run::command("rustup").args([
        "toolchain",
        "install",
        oldest,
        "--profile",
        "minimal",
        "--no-self-update",
    ]))
    .map_err(|error| format!("Rust {oldest} is needed: {error}"))?;
    let arguments = ["run", oldest, "cargo", "check", "--workspace", "--all-features", "--all-targets"];
    // `cargo run` sets variables with its own toolchain, which would override the requested one.
    run::run(run::command("rustup").args(arguments).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN"))
}

/// Writes a substitute for a C compiler, and returns its path.
fn pretend_compiler() -> TaskResult<PathBuf> {
    let path = fixture::results_folder("platforms")?.join("cc");
    std::fs::write(&path, NO_COMPILER)?;
    run::run(run::command("chmod").arg("+x").arg(&path))?;
    Ok(path)
}

fn check(target: &str, compiler: &Path) -> TaskResult {
    let mut cargo = run::cargo();
    cargo.args(["clippy", "--target", target, "--all-features", "--lib", "--bins", "--example", "echo"]);
    cargo.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
    for tool in ["CC", "AR"] {
        cargo.env(format!("{tool}_{}", target.replace('-', "_")), compiler);
    }
    run::run(cargo.args(["--", "-D", "warnings"]))
}
