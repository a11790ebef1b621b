//! `load` starts the echo servers, drives them, and prints what they cost beside the physical limit.

mod auth;
mod client;
mod command;
mod drive;
mod hub;
mod instructions;
mod issuer;
mod machine;
mod matrix;
mod memory;
mod report;
mod run;
mod servers;
mod start;
mod statistics;
mod stores;
mod transports;
mod verdict;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::servers::{Binaries, ServerOutput};

/// Measures MCP echo servers against the least that a server can do.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    servers: ServerArguments,
    #[command(subcommand)]
    command: Command,
}

/// Where the servers are, and what happens when ours is missing.
#[derive(Args)]
struct ServerArguments {
    /// The binary of our echo example; by default the one that the workspace above builds.
    #[arg(long, global = true, env = "TRUNKLINE_ECHO", value_name = "PATH")]
    ours: Option<PathBuf>,
    /// Fail when our echo example is missing, in place of measuring the others alone.
    #[arg(long, global = true)]
    require_ours: bool,
    /// Let the servers' standard error through, to see why one does not start.
    #[arg(long, global = true)]
    show_server_output: bool,
}

#[derive(Subcommand)]
enum Command {
    /// CPU per request and requests per second, as ratios to the limit.
    Run(run::RunArguments),
    /// Resident memory of idle sessions and standing streams.
    Memory(memory::MemoryArguments),
    /// Time from process start to the first answer on stdio.
    Start(start::StartArguments),
    /// A call with a valid access token, against the anonymous call.
    Auth(auth::AuthArguments),
    /// CPU per call of our client and of rmcp's.
    Client(client::ClientArguments),
    /// How long a call takes over each transport, with one client and with many.
    Transports(transports::TransportArguments),
    /// A call through our hub and through others, against the direct call.
    Hub(hub::HubArguments),
    /// A tool call that runs a command, against the command alone.
    Command(command::CommandArguments),
    /// Many sessions in each store, beside the store in memory.
    Stores(stores::StoreArguments),
    /// User-space instructions per request, by callgrind.
    Instructions(instructions::InstructionArguments),
}

fn main() -> ExitCode {
    match run_command(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_command(Arguments { servers, command }: Arguments) -> Result<()> {
    // This one needs none of the echo servers.
    if let Command::Command(arguments) = &command {
        machine::pin_generator()?;
        return command::run(arguments);
    }
    let output = if servers.show_server_output { ServerOutput::Shown } else { ServerOutput::Hidden };
    let binaries = Binaries::locate(servers.ours, output)?;
    // Nor does this one.
    if let Command::Stores(arguments) = &command {
        machine::pin_generator()?;
        return stores::run(&binaries, arguments);
    }
    if !binaries.have_ours() {
        anyhow::ensure!(
            !servers.require_ours,
            "our echo example is missing: {}",
            binaries.ours_path().display()
        );
        eprintln!("WARNING: our echo example is missing: {}", binaries.ours_path().display());
        eprintln!("WARNING: only the limit and rmcp are measured; `--require-ours` makes this an error.");
    }
    let ours_alone = match &command {
        Command::Instructions(arguments) => arguments.ours_only,
        Command::Transports(_) | Command::Auth(_) => true,
        _ => false,
    };
    if !ours_alone {
        binaries.require_peers()?;
    }
    machine::pin_generator()?;
    match command {
        Command::Run(arguments) => run::run(&binaries, &arguments),
        Command::Memory(arguments) => memory::run(&binaries, &arguments),
        Command::Start(arguments) => start::run(&binaries, &arguments),
        Command::Auth(arguments) => auth::run(&binaries, &arguments),
        Command::Client(arguments) => client::run(&binaries, &arguments),
        Command::Transports(arguments) => transports::run(&binaries, &arguments),
        Command::Hub(arguments) => hub::run(&binaries, &arguments),
        Command::Command(arguments) => command::run(&arguments),
        Command::Stores(arguments) => stores::run(&binaries, &arguments),
        Command::Instructions(arguments) => instructions::run(&binaries, &arguments),
    }
}
