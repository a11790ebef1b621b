//! The process under attack, and what it holds.

use std::fs;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::TaskResult;
use crate::fixture::{self, START_TIMEOUT};
use crate::run::{self, BackgroundProcess};

/// A server that listens on a free port.
#[derive(Debug)]
pub(crate) struct HttpTarget {
    running: BackgroundProcess,
    pub(crate) address: SocketAddr,
}

impl HttpTarget {
    /// Builds the example with one tool and starts it with options of its own.
    pub(crate) fn echo(options: &[&str]) -> TaskResult<Self> {
        Self::start(&echo_binary()?, options)
    }

    /// Builds the fixture that has a tool for everything and starts it.
    pub(crate) fn everything() -> TaskResult<Self> {
        Self::start(&fixture::build_release("trunkline-conformance", "--bin", "everything-server")?, &[])
    }

    /// Builds the command `trunkline` and starts it with its built-in echo server.
    pub(crate) fn command() -> TaskResult<Self> {
        let binary = fixture::build_release("trunkline-cli", "--bin", "trunkline")?;
        Self::start(&binary, &["serve", "--builtin", "echo"])
    }

    fn start(binary: &PathBuf, words: &[&str]) -> TaskResult<Self> {
        let address = fixture::free_address()?;
        let mut command = run::command(binary);
        command.args(words).arg("--http").arg(address.to_string()).stderr(Stdio::null());
        let mut running = BackgroundProcess::start(&mut command)?;
        running.wait_until(START_TIMEOUT, || run::is_listening(address))?;
        Ok(Self { running, address })
    }

    /// Reads what the process holds now.
    pub(crate) fn usage(&mut self) -> TaskResult<ResourceUsage> {
        usage_of(&mut self.running)
    }

    /// Waits until the process holds no more than a number of descriptors, as after connections were dropped.
    pub(crate) fn settle(&mut self, descriptors: usize, limit: Duration) -> TaskResult<ResourceUsage> {
        let deadline = Instant::now() + limit;
        loop {
            let held = self.usage()?;
            if held.descriptors <= descriptors || Instant::now() > deadline {
                return Ok(held);
            }
            sleep(Duration::from_millis(50));
        }
    }
}

/// A server over pipes.
#[derive(Debug)]
pub(crate) struct PipedTarget {
    running: BackgroundProcess,
    pub(crate) input: ChildStdin,
    pub(crate) output: BufReader<ChildStdout>,
}

impl PipedTarget {
    pub(crate) fn echo() -> TaskResult<Self> {
        Self::start(&echo_binary()?)
    }

    pub(crate) fn everything() -> TaskResult<Self> {
        Self::start(&fixture::build_release("trunkline-conformance", "--bin", "everything-server")?)
    }

    fn start(binary: &PathBuf) -> TaskResult<Self> {
        let mut command = run::command(binary);
        command.arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = BackgroundProcess::start(&mut command)?;
        let (input, output) = running.pipes();
        let (input, output) = (input.ok_or("no input")?, output.ok_or("no output")?);
        Ok(Self { running, input, output: BufReader::new(output) })
    }

    /// Reads what the process holds now.
    pub(crate) fn usage(&mut self) -> TaskResult<ResourceUsage> {
        usage_of(&mut self.running)
    }
}

fn echo_binary() -> TaskResult<PathBuf> {
    fixture::build_release("trunkline", "--example", "echo")
}

/// What a process holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResourceUsage {
    /// Memory in KiB.
    pub(crate) memory: usize,
    /// Open files and sockets.
    pub(crate) descriptors: usize,
}

fn usage_of(running: &mut BackgroundProcess) -> TaskResult<ResourceUsage> {
    if let Some(status) = running.ended()? {
        return Err(format!("the server ended: {status}").into());
    }
    let folder = format!("/proc/{}", running.id());
    let status = fs::read_to_string(format!("{folder}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmRSS")).ok_or("no memory figure")?;
    let memory = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(ResourceUsage { memory, descriptors: fs::read_dir(format!("{folder}/fd"))?.count() })
}

/// Writes an amount of memory for a table.
pub(crate) fn mib(kib: usize) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}
