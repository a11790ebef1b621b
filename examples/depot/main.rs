//! A command-line program with a deep tree of commands, which is an MCP server by the call of `Program` in its `main`.
//!
//! It keeps components, workers and much else in a store that it reaches over HTTP; `depot store PORT` is such a store.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is a program for a terminal")]

mod convert;
mod debug;
mod run;
mod service;
mod store;
mod tree;

use std::process::ExitCode;

use trunkline_commands::{Manifests, Policy, Program};

fn main() -> ExitCode {
    let matches = Program::new(tree::command())
        .policy(Policy::golem())
        .manifests(Manifests::new(["golem.yaml"]))
        .matches();
    match run::run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
