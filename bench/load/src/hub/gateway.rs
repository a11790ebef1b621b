//! The gateways under measurement: how each is configured, started, and called.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::drive::Behind;
use crate::servers::{Binaries, HttpServer, Kind, Launch, Program, free_address};
use crate::wire::Place;

/// A program that passes calls on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gateway {
    /// `bare-hub`: two exchanges of hyper's, and nothing above them.
    Bare,
    /// `trunkline serve`, as `cargo build --release` makes it.
    Ours,
    /// `trunkline serve`, as `cargo xtask release` makes it for people to have.
    Released,
    /// The crate `mcp-proxy`.
    McpProxy,
    /// The package `fastmcp`, as a proxy.
    FastMcp,
}

/// How a gateway reaches the server that has the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upstream {
    Http,
    Stdio,
}

impl Upstream {
    pub(super) const ALL: [Self; 2] = [Self::Http, Self::Stdio];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Http => "HTTP",
            Self::Stdio => "stdio",
        }
    }
}

impl Gateway {
    pub(super) const ALL: [Self; 5] = [Self::Bare, Self::Ours, Self::Released, Self::McpProxy, Self::FastMcp];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "both sides (bare)",
            Self::Ours => "trunkline",
            Self::Released => "trunkline, as released",
            Self::McpProxy => "mcp-proxy",
            Self::FastMcp => "fastmcp",
        }
    }

    /// Finds the program, or returns how to get it.
    pub(super) fn locate(self, programs: &Path) -> Result<PathBuf> {
        let (path, hint) = match self {
            Self::Bare => (programs.join("bare-hub"), "`cargo build --release`"),
            Self::Ours => (
                programs.join("../../../target/release/trunkline"),
                "`cargo build --release --package trunkline-cli`",
            ),
            Self::Released => (programs.join("../../../target/dist/trunkline"), "`cargo xtask release`"),
            Self::McpProxy => (programs.join("../peers/bin/mcp-proxy"), "`bench/peers`"),
            Self::FastMcp => (programs.join("../peers/venv/bin/python"), "`bench/peers`"),
        };
        ensure!(path.is_file(), "{} is missing: {hint} makes it", path.display());
        Ok(path)
    }

    /// The path of its endpoint, and what the tool of the only server is called there.
    const fn endpoint(self) -> (&'static str, &'static str) {
        match self {
            Self::Bare => ("/mcp", "echo"),
            Self::Ours | Self::Released => ("/mcp", "up__echo"),
            Self::McpProxy => ("/", "up/echo"),
            Self::FastMcp => ("/mcp", "echo"),
        }
    }

    /// Writes its configuration for one server, and gives the words that follow its name.
    fn configure(self, folder: &Path, address: SocketAddr, up: &Reached) -> Result<Vec<OsString>> {
        let write = |name: &str, text: String| -> Result<OsString> {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
            Ok(path.into())
        };
        Ok(match self {
            Self::Bare => match up {
                Reached::Address(up) => vec![address.to_string().into(), up.to_string().into()],
                Reached::Program(_) => bail!("it speaks nothing but HTTP"),
            },
            Self::Ours | Self::Released => {
                let text = match up {
                    Reached::Address(up) => format!("[servers.up]\nurl = \"{}\"\n", url(*up)),
                    Reached::Program(program) => {
                        format!("[servers.up]\ncommand = \"{program}\"\nargs = [\"--stdio\"]\n")
                    }
                };
                // A hub follows its file, so that two must not share one.
                let file = write(&format!("trunkline-{}.toml", address.port()), text)?;
                let address = address.to_string().into();
                vec!["serve".into(), "--trust".into(), "--config".into(), file, "--http".into(), address]
            }
            Self::McpProxy => {
                let backend = match up {
                    Reached::Address(up) => format!("transport = \"http\"\nurl = \"{}\"\n", url(*up)),
                    Reached::Program(program) => {
                        format!("transport = \"stdio\"\ncommand = \"{program}\"\nargs = [\"--stdio\"]\n")
                    }
                };
                let (host, port) = (address.ip(), address.port());
                let text = format!(
                    "[proxy]\nname = \"bench\"\nseparator = \"/\"\n\n[proxy.listen]\nhost = \"{host}\"\nport = {port}\n\n\
                     [[backends]]\nname = \"up\"\n{backend}"
                );
                vec!["--config".into(), write("mcp-proxy.toml", text)?]
            }
            Self::FastMcp => {
                let target = match up {
                    Reached::Address(up) => format!("{:?}", url(*up)),
                    Reached::Program(program) => {
                        format!("{{'mcpServers': {{'up': {{'command': {program:?}, 'args': ['--stdio']}}}}}}")
                    }
                };
                let (host, port) = (address.ip(), address.port());
                let text = format!(
                    "from fastmcp.server import create_proxy\n\
                     create_proxy({target}, name='bench').run(\n    \
                     transport='http', host='{host}', port={port}, path='/mcp', show_banner=False, log_level='error')\n"
                );
                vec![write("fastmcp_proxy.py", text)?]
            }
        })
    }
}

/// Where the server that has the tool is.
enum Reached {
    Address(SocketAddr),
    Program(String),
}

fn url(address: SocketAddr) -> String {
    format!("http://{address}/mcp")
}

/// A gateway in front of our echo example.
pub(super) struct Front {
    server: HttpServer,
    place: Place,
    behind: Behind,
    /// It ends together with the gateway.
    _echo: Option<HttpServer>,
}

impl Front {
    pub(super) fn start(
        binaries: &Binaries,
        gateway: Gateway,
        program: &Path,
        upstream: Upstream,
        folder: &Path,
    ) -> Result<Self> {
        let echo = match upstream {
            Upstream::Http => Some(HttpServer::start(binaries, Kind::Ours, &Launch::default())?),
            Upstream::Stdio => None,
        };
        let reached = match &echo {
            Some(echo) => Reached::Address(echo.address()),
            None => Reached::Program(binaries.ours_path().display().to_string()),
        };
        let address = free_address()?;
        let arguments = gateway.configure(folder, address, &reached)?;
        let program = Program { name: gateway.name(), path: program.to_owned(), arguments };
        let server = HttpServer::start_program(binaries, &program, address)?;
        let (path, tool) = gateway.endpoint();
        let behind = echo.as_ref().map_or(Behind::Children, |echo| Behind::Process(echo.id()));
        Ok(Self {
            server,
            place: Place { address, path, tool, authorization: None, proof_key: None },
            behind,
            _echo: echo,
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.server.id()
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn behind(&self) -> Behind {
        self.behind
    }
}
