//! A server that listens on a loopback port.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::binaries::{Binaries, Kind, Launch, Program};
use super::process::Process;

/// Generous, because a server under callgrind starts slowly.
const START_PATIENCE: Duration = Duration::from_secs(30);
const END_PATIENCE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(2);

/// A running HTTP server.
pub(crate) struct HttpServer {
    process: Process,
    address: SocketAddr,
}

impl HttpServer {
    /// Starts a server on a free port and waits until it accepts connections.
    pub(crate) fn start(binaries: &Binaries, kind: Kind, launch: &Launch) -> Result<Self> {
        let address = free_address()?;
        Self::start_command(&mut binaries.http_command(kind, address, launch), kind.name(), address)
    }

    /// Starts another program, and waits until it accepts connections at the given address.
    pub(crate) fn start_program(binaries: &Binaries, program: &Program, address: SocketAddr) -> Result<Self> {
        Self::start_command(&mut binaries.command_of(program), program.name, address)
    }

    fn start_command(command: &mut Command, name: &str, address: SocketAddr) -> Result<Self> {
        let mut process = Process::start(command)?;
        let deadline = Instant::now() + START_PATIENCE;
        // Where nothing listens, a connection may be given the very port that it goes to, and then reaches itself.
        let reaches_another = |stream: TcpStream| stream.local_addr().is_ok_and(|own| own != address);
        while !TcpStream::connect(address).is_ok_and(reaches_another) {
            if let Some(status) = process.ended()? {
                bail!("{name} ended at once with {status}; see `--show-server-output`");
            }
            if Instant::now() >= deadline {
                bail!("{name} does not listen on {address} after {START_PATIENCE:?}");
            }
            thread::sleep(POLL);
        }
        Ok(Self { process, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends the server in an orderly way, so that a tool around it can write its report.
    pub(crate) fn end(mut self) -> Result<()> {
        self.process.ask_to_end()?;
        self.process.wait_at_most(END_PATIENCE)
    }
}

/// Finds a port that is free; between here and the server's own bind another process could take it.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    Ok(listener.local_addr()?)
}
