//! `cargo xtask release`: the binary as people are to have it.
//!
//! It is the same code as `cargo build --release` compiles. But first a binary that counts what it does serves calls as a hub
//! does at work, and the compiler then puts side by side what runs at every call, and out of the way what never does: a hub's
//! call runs through a thousand places of the program, and on most machines fetching them costs more than running them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::args::Args;
use crate::fixture::{self, FixtureServer};
use crate::{TaskResult, run};

/// Where the binary is put, below `target/`.
const FOLDER: &str = "dist";

pub(crate) fn command(args: Args) -> TaskResult {
    args.finish()?;
    let folder = fixture::results_folder(FOLDER)?;
    // Whatever is made on the way, apart from other builds: cargo does not see that counts have changed.
    let workshop = folder.join("workshop");
    fs::create_dir(&workshop)?;
    let host = host()?;
    let profdata = profdata(&host)?;
    let (counts, profile) = (workshop.join("counts"), workshop.join("counts.profdata"));
    println!("== those it works with");
    let echo = fixture::build_release("trunkline", "--example", "echo")?;
    let client = client()?;
    println!("== a binary that counts");
    let counting = build(&workshop, &host, &format!("-Cprofile-generate={}", counts.display()))?;
    println!("== at work");
    run_training_load(&workshop, &counting, &echo, &client)?;
    println!("== the binary");
    run::run(run::command(profdata).arg("merge").arg("--output").arg(&profile).arg(&counts))?;
    let built = build(&workshop, &host, &format!("-Cprofile-use={}", profile.display()))?;
    println!("== at work again");
    run_training_load(&workshop, &built, &echo, &client)?;
    let released = folder.join("trunkline");
    fs::copy(&built, &released)?;
    fs::remove_dir_all(&workshop)?;
    println!("{} is {:.1} MB long", released.display(), fs::metadata(&released)?.len() as f64 / 1e6);
    Ok(())
}

/// The system that we build for, which is the one that we run on.
fn host() -> TaskResult<String> {
    let about = run::output(run::command("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc does not say which system it is for")?.to_owned())
}

/// Finds the program that sums up counts; it has to be as new as the compiler, with which it comes.
fn profdata(host: &str) -> TaskResult<PathBuf> {
    run::run(run::command("rustup").args(["component", "add", "llvm-tools"]))
        .map_err(|error| format!("llvm-profdata is needed, which comes with rustup: {error}"))?;
    let sysroot = run::output(run::command("rustc").args(["--print", "sysroot"]))?;
    let path = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin/llvm-profdata");
    if path.is_file() { Ok(path) } else { Err(format!("{} is missing", path.display()).into()) }
}

/// Builds the command with a flag for the compiler, and returns its path.
///
/// Counts are found by the names of functions, which depend on the compiler's settings: both binaries are built with the
/// same ones, or the counts would be ignored without a message.
fn build(workshop: &Path, host: &str, flag: &str) -> TaskResult<PathBuf> {
    // With a target named, the flag is for what is shipped alone, and not for what runs while it is built.
    let options =
        ["--package", "trunkline-cli", "--bin", "trunkline", "--target", host, "--profile", "released"];
    let target = workshop.join("target");
    let target = target.to_str().ok_or("the path of the workspace is not text")?;
    // In this form a flag may have blanks in it.
    let variables = [("CARGO_ENCODED_RUSTFLAGS", flag), ("CARGO_TARGET_DIR", target)];
    fixture::build_with(&options, "trunkline", &variables)
}

/// How clients come to the hub: where, and with which revision.
const CLIENT_ROUTES: &[(&str, &str, &str)] = &[
    ("http", "/mcp", "2025-03-26"),
    ("http", "/mcp", "2025-06-18"),
    ("http", "/mcp", "2025-11-25"),
    ("http", "/mcp", "2026-07-28"),
    ("http", "/sse", "2024-11-05"),
    ("ws", "/ws", "2025-11-25"),
    ("ws", "/ws", "2026-07-28"),
];

/// The servers of the hub, one over HTTP and one over pipes.
const SERVERS: [&str; 2] = ["up", "pipe"];

/// How many clients come at once, in turns: alone one takes other ways through the program than in a crowd.
const CONCURRENCY: [&str; 2] = ["1", "32"];

/// How many calls each crowd makes.
const CALLS: &str = "10000";

/// A hub has this long to write down what it counted, behind the half minute that it gives to calls.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Has a hub pass on calls of every kind of client to every kind of server, each of which checks its answers.
fn run_training_load(workshop: &Path, binary: &Path, echo: &Path, client: &Path) -> TaskResult {
    let behind = FixtureServer::start(echo)?;
    let config = workshop.join("trunkline.toml");
    let [up, pipe] = SERVERS;
    fs::write(
        &config,
        format!(
            "[servers.{up}]\nurl = {:?}\n\n[servers.{pipe}]\ncommand = {:?}\nargs = [\"--stdio\"]\n",
            behind.url("http", "/mcp"),
            echo.display().to_string(),
        ),
    )?;
    let hub = FixtureServer::start_by(|address| {
        let mut command = run::command(binary);
        command
            .args(["serve", "--trust", "--log-level", "warn", "--http", &address.to_string(), "--config"])
            .arg(&config);
        command
    })?;
    for (scheme, path, revision) in CLIENT_ROUTES {
        for server in SERVERS {
            for clients in CONCURRENCY {
                let mut crowd = run::command(client);
                crowd.args(["--http", &hub.url(scheme, path), "--revision", revision]);
                crowd.args(["--tool", &format!("{server}__echo"), "--clients", clients, "--calls", CALLS]);
                run::output(&mut crowd)?;
            }
        }
        println!("{revision} over {scheme} at {path}");
    }
    hub.stop(EXIT_TIMEOUT)
}

/// Builds the client that makes the calls, and returns its path.
fn client() -> TaskResult<PathBuf> {
    let options = ["--release", "--manifest-path", "bench/Cargo.toml", "--bin", "client-ours"];
    fixture::build_with(&options, "client-ours", &[])
}
