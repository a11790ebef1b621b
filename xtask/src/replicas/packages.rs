//! Redis and the balancers, from the packages of the distribution.

use std::process::Stdio;

use crate::{TaskResult, run};

/// Each program with an option that ends it at once, and its package.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("redis-server", "--version", "redis-server"),
    ("redis-cli", "--version", "redis-tools"),
    ("nginx", "-v", "nginx-light"),
    ("haproxy", "-v", "haproxy"),
];

/// Installs what is missing.
pub(super) fn install() -> TaskResult {
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, option, _)| !is_there(program, option))
        .map(|(_, _, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {}", missing.join(", "));
    let apt = |words: &[&str]| {
        run::run(run::command("apt-get").args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "--quiet"])?;
    apt(&[&["install", "--yes", "--quiet", "--no-install-recommends"][..], &missing].concat())
}

fn is_there(program: &str, option: &str) -> bool {
    let status = run::command(program).arg(option).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
