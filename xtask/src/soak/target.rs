//! The process under attack, and what it holds.

use std::fs;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::fixture::{self, START_LIMIT};
use crate::run::{self, Running};

/// A server that listens on a free port.
#[derive(Debug)]
pub(crate) struct Target {
    running: Running,
    pub(crate) address: SocketAddr,
}

impl Target {
    /// Builds the example with one tool and starts it with options of its own.
    pub(crate) fn echo(options: &[&str]) -> Outcome<Self> {
        Self::start(&echo_binary()?, options)
    }

    /// Builds the fixture that has a tool for everything and starts it.
    pub(crate) fn everything() -> Outcome<Self> {
        Self::start(&fixture::build_release("trunkline-conformance", "--bin", "everything-server")?, &[])
    }

    /// Builds the command `trunkline` and starts it with its built-in echo server.
    pub(crate) fn command() -> Outcome<Self> {
        let binary = fixture::build_release("trunkline-cli", "--bin", "trunkline")?;
        Self::start(&binary, &["serve", "--builtin", "echo"])
    }

    fn start(binary: &PathBuf, words: &[&str]) -> Outcome<Self> {
        let address = fixture::free_address()?;
        let mut command = run::command(binary);
        command.args(words).arg("--http").arg(address.to_string()).stderr(Stdio::null());
        let mut running = Running::start(&mut command)?;
        running.wait_until(START_LIMIT, || run::is_listening(address))?;
        Ok(Self { running, address })
    }

    /// Reads what the process holds now.
    pub(crate) fn held(&mut self) -> Outcome<Held> {
        held(&mut self.running)
    }

    /// Waits until the process holds no more than a number of descriptors, as after connections were dropped.
    pub(crate) fn settle(&mut self, descriptors: usize, limit: Duration) -> Outcome<Held> {
        let deadline = Instant::now() + limit;
        loop {
            let held = self.held()?;
            if held.descriptors <= descriptors || Instant::now() > deadline {
                return Ok(held);
            }
            sleep(Duration::from_millis(50));
        }
    }
}

/// A server that speaks over pipes.
#[derive(Debug)]
pub(crate) struct Piped {
    running: Running,
    pub(crate) input: ChildStdin,
    pub(crate) output: BufReader<ChildStdout>,
}

impl Piped {
    pub(crate) fn echo() -> Outcome<Self> {
        Self::start(&echo_binary()?)
    }

    pub(crate) fn everything() -> Outcome<Self> {
        Self::start(&fixture::build_release("trunkline-conformance", "--bin", "everything-server")?)
    }

    fn start(binary: &PathBuf) -> Outcome<Self> {
        let mut command = run::command(binary);
        command.arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = Running::start(&mut command)?;
        let (input, output) = running.pipes();
        let (input, output) = (input.ok_or("no input")?, output.ok_or("no output")?);
        Ok(Self { running, input, output: BufReader::new(output) })
    }

    /// Reads what the process holds now.
    pub(crate) fn held(&mut self) -> Outcome<Held> {
        held(&mut self.running)
    }
}

fn echo_binary() -> Outcome<PathBuf> {
    fixture::build_release("trunkline", "--example", "echo")
}

/// What a process holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Memory in KiB.
    pub(crate) memory: usize,
    /// Open files and sockets.
    pub(crate) descriptors: usize,
}

fn held(running: &mut Running) -> Outcome<Held> {
    if let Some(status) = running.ended()? {
        return Err(format!("the server ended: {status}").into());
    }
    let folder = format!("/proc/{}", running.id());
    let status = fs::read_to_string(format!("{folder}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).ok_or("no memory figure")?;
    let memory = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(Held { memory, descriptors: fs::read_dir(format!("{folder}/fd"))?.count() })
}

/// Writes an amount of memory for a table.
pub(crate) fn mib(kib: usize) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}
