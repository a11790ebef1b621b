//! The project's own commands, run as `cargo xtask COMMAND`; each command is one file.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these commands talk to a person at a terminal or to the log of a build"
)]

mod args;
mod argv;
mod browser;
mod conformance;
mod console;
mod crashes;
mod faults;
mod fixture;
mod hostile;
mod instructions;
mod interop;
mod isolation;
mod keychain;
#[cfg(test)]
mod layers;
mod matrix;
mod platforms;
mod ratchet;
mod release;
mod replicas;
mod run;
mod soak;
mod suite_results;
mod table;
mod telemetry;
mod test;
mod tools;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use args::Args;

/// What every command returns; an error is one sentence for the person who ran it.
pub(crate) type TaskResult<T = ()> = Result<T, Box<dyn Error>>;

const USAGE: &str = "\
cargo xtask COMMAND

  test         everything a change has to pass    [--only STEP]... [--skip STEP]...
  conformance  the official suite                 [server|client] [--spec-version V] [--quick] [--verbose]
                                                  [--url URL] [--command \"CLIENT\"] [--through-bridge]
  interop      clients and servers of others      [--only TEXT] [--url URL] [-- SERVER [ARGUMENT]...]
  matrix       what the bridge carries, measured  [--tables N,N] [--check]
  servers      the servers of others alone        [--only TEXT]
  smoke        a hub, four official clients, six servers, and a person who changes them meanwhile
  instructions what a call costs, in instructions [--save]
  argv         calls of random programs, read back [N]
  faults       servers of a hub fail under load   [kills|restarts|toggles|crowd|all] [N] [--quick]
  hostile      official clients and healthy servers beside servers of every hostile kind   [SECONDS] [--release]
  isolation    anonymous clients through a hub, none of which gets what is another's   [N] [--release] [--hub PATH]
  crashes      processes with a session store in a file are killed   [N]
  replicas     three replicas behind a balancer, while they are killed and Redis fails   [N] [--release] [--only TEXT]
                                                  [--load | --suites] [--every SECONDS]
                                                  [--programs FOLDER]
  soak         campaigns against a real process   sessions|streams|slow-readers|malformed|cancel N
  platforms    it compiles for other systems and with the oldest Rust   [--only TARGET]...
  ratchet      how the code reads, in numbers that get no worse   [--save]
  release      the binary as people are to have it, in target/dist
  tools        install what conformance and interop need
  browser      pages of other origins in a real browser
  console      the web console in Chromium and Firefox, and its type check
  keychain     the key of a token store in a Secret Service
  telemetry    the traces and metrics of a hub at a real collector
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let args = Args::new(arguments);
    let outcome = match command.as_str() {
        "test" => test::command(args),
        "conformance" => conformance::command(args),
        "interop" => interop::command(args),
        "matrix" => matrix::command(args),
        "servers" => interop::servers(args),
        "smoke" => interop::smoke::command(args),
        "instructions" => instructions::command(args),
        "argv" => argv::command(args),
        "crashes" => crashes::command(args),
        "faults" => faults::command(args),
        "hostile" => hostile::command(args),
        "isolation" => isolation::command(args),
        "soak" => soak::command(args),
        "ratchet" => ratchet::command(args),
        "release" => release::command(args),
        "replicas" => replicas::command(args),
        "platforms" => platforms::command(args),
        "browser" => browser::command(args),
        "console" => console::command(args),
        "keychain" => keychain::command(args),
        "telemetry" => telemetry::command(args),
        "tools" => args.finish().and_then(|()| tools::install_all()),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Gives the folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}
