//! A server on the other end of two pipes.

use std::io::{Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::wire::{Call, Era, FIRST_ID, check_answer, initialize, initialized};

use super::binaries::{Binaries, Kind, Launch};
use super::process::Process;

const END_PATIENCE: Duration = Duration::from_secs(15);

/// What a single answer may weigh.
const MAX_LINE: usize = 1024 * 1024;

/// A running stdio server.
pub(crate) struct StdioServer {
    pub(crate) input: ChildStdin,
    pub(crate) output: LineReader,
    process: Process,
}

impl StdioServer {
    /// Starts a server; it may not be ready yet, and the pipe holds what it is sent meanwhile.
    pub(crate) fn start(binaries: &Binaries, kind: Kind, launch: &Launch) -> Result<Self> {
        let mut command = binaries.stdio_command(kind, launch);
        let mut process = Process::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let input = process.child().stdin.take().context("the server has no standard input")?;
        let output = process.child().stdout.take().context("the server has no standard output")?;
        Ok(Self { input, output: LineReader { pipe: output, received: Vec::new() }, process })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Sends `initialize` and waits for its answer.
    pub(crate) fn initialize(&mut self) -> Result<()> {
        self.send(format!("{}\n", initialize(FIRST_ID)).as_bytes())?;
        let answer = self.output.next()?;
        let answer = String::from_utf8_lossy(&answer);
        ensure!(answer.contains("\"protocolVersion\""), "initialize was answered with `{answer}`");
        Ok(())
    }

    /// Sends what the era requires before the first call.
    pub(crate) fn prepare(&mut self, era: Era) -> Result<()> {
        if era == Era::Legacy {
            self.initialize()?;
            self.send(format!("{}\n", initialized()).as_bytes())?;
        }
        Ok(())
    }

    /// Makes one call and checks its answer.
    pub(crate) fn call(&mut self, call: &mut Call, id: u32, text: &str) -> Result<()> {
        self.send(call.with_id(id))?;
        let answered = check_answer(&self.output.next()?, text)?;
        ensure!(answered == id, "the answer is to request {answered}, not to {id}");
        Ok(())
    }

    /// Closes standard input and waits for the server to end.
    pub(crate) fn end(self) -> Result<()> {
        let Self { input, output, mut process } = self;
        drop(input);
        process.wait_at_most(END_PATIENCE)?;
        drop(output);
        Ok(())
    }

    /// Makes reading and writing wait again, as they do not after a loop over many requests.
    pub(crate) fn block(&self) -> Result<()> {
        for pipe in [rustix::fd::AsFd::as_fd(&self.input), rustix::fd::AsFd::as_fd(&self.output.pipe)] {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? - OFlags::NONBLOCK)?;
        }
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.input.write_all(bytes).context("write to the server")
    }
}

/// Reads one line at a time from a server that sends nothing unasked.
pub(crate) struct LineReader {
    pub(crate) pipe: ChildStdout,
    received: Vec<u8>,
}

impl LineReader {
    /// Waits for the next line and gives it without its end.
    pub(crate) fn next(&mut self) -> Result<Vec<u8>> {
        let mut chunk = [0; 16 * 1024];
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.received) {
                let rest = self.received.split_off(end + 1);
                self.received.pop();
                return Ok(std::mem::replace(&mut self.received, rest));
            }
            let count = self.pipe.read(&mut chunk).context("read from the server")?;
            let Some(fresh) = chunk.get(..count).filter(|fresh| !fresh.is_empty()) else {
                bail!("the server closed its output; see `--show-server-output`")
            };
            ensure!(self.received.len() + count <= MAX_LINE, "a line exceeds {MAX_LINE} bytes");
            self.received.extend_from_slice(fresh);
        }
    }
}
