//! Tests a third-party server, with the client SDK or with the command `trunkline`, and prints the results.
//!
//! `cargo xtask interop` installs and starts the servers and runs this for each of them:
//!
//! ```text
//! real-servers --server NAME --mode MODE --scratch DIR [--binary FILE] (--url URL | -- COMMAND [ARGUMENT]...)
//! ```
//!
//! With `--binary` it is the command that is driven. One line is printed for each check, and a count at the end.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what is printed is the whole purpose")]

mod answers;
mod binary;
mod leftovers;
mod options;
mod page;
mod peer;
mod report;
mod sdk;
mod seen;

use std::process::ExitCode;

use crate::options::Options;
use crate::report::Report;

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Options::read(std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let mut report = Report::default();
    let known = match options.binary {
        Some(_) => binary::run(&options, &mut report).await,
        None => sdk::run(&options, &mut report).await,
    };
    if let Err(problem) = known {
        eprintln!("{problem}");
        return ExitCode::from(2);
    }
    report.close()
}
