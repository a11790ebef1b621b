//! `cargo xtask servers`: holds our client and our command against servers of other people's making.

use std::ffi::OsString;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::args::Args;
use crate::fixture::{self, START_LIMIT};
use crate::interop::{self, Summary};
use crate::run::{self, Running};
use crate::table::Table;
use crate::tools::{self, Tools};
use crate::{Outcome, root};

/// Each check has its own limit, so this one only catches a driver that will not end.
const DRIVER_LIMIT: Duration = Duration::from_secs(600);

/// A server, how it is reached and in which modes.
#[derive(Debug)]
struct Server {
    /// The name by which the driver knows what to check.
    name: &'static str,
    program: Program,
    ways: &'static [Way],
    modes: &'static [&'static str],
}

/// What runs a server.
#[derive(Debug)]
enum Program {
    /// A script of ours, on a package of npm's.
    NodeScript(&'static str),
    /// A script of ours, on one of the two generations of PyPI's `mcp`.
    PythonScript(&'static str, Generation),
    /// A published package of npm's, by the file that runs it.
    NodePackage(&'static str),
    /// A published package of PyPI's, by the command that it installs.
    PythonPackage(&'static str),
}

#[derive(Clone, Copy, Debug)]
enum Generation {
    First,
    Second,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Over its standard streams, with these arguments.
    Stdio(&'static [&'static str]),
    /// By the path of an address: the port is an argument of our own servers.
    Http(&'static str),
    /// By the path of an address: the port is a variable, and these are the arguments.
    Listening(&'static [&'static str], &'static str),
}

const BOTH: &[&str] = &["auto", "legacy", "modern"];
const LEGACY: &[&str] = &["auto"];
const OWN: &[Way] = &[Way::Stdio(&[]), Way::Http("/mcp")];
const PIPES: &[Way] = &[Way::Stdio(&[])];

const SERVERS: &[Server] = &[
    Server { name: "npm-sdk-v1", program: Program::NodeScript("server-v1.mjs"), ways: OWN, modes: LEGACY },
    Server { name: "npm-server-v2", program: Program::NodeScript("server-v2.mjs"), ways: OWN, modes: BOTH },
    Server {
        name: "pypi-mcp-v1",
        program: Program::PythonScript("server_v1.py", Generation::First),
        ways: OWN,
        modes: LEGACY,
    },
    Server {
        name: "pypi-mcp-v2",
        program: Program::PythonScript("server_v2.py", Generation::Second),
        ways: OWN,
        modes: BOTH,
    },
    Server {
        name: "everything",
        program: Program::NodePackage("server-everything/dist/index.js"),
        ways: &[
            Way::Stdio(&["stdio"]),
            Way::Listening(&["streamableHttp"], "/mcp"),
            Way::Listening(&["sse"], "/sse"),
        ],
        modes: LEGACY,
    },
    Server {
        name: "filesystem",
        program: Program::NodePackage("server-filesystem/dist/index.js"),
        ways: PIPES,
        modes: LEGACY,
    },
    Server {
        name: "memory",
        program: Program::NodePackage("server-memory/dist/index.js"),
        ways: PIPES,
        modes: LEGACY,
    },
    Server { name: "time", program: Program::PythonPackage("mcp-server-time"), ways: PIPES, modes: BOTH },
    Server { name: "git", program: Program::PythonPackage("mcp-server-git"), ways: PIPES, modes: BOTH },
    Server {
        name: "fetch",
        program: Program::PythonPackage("mcp-server-fetch"),
        ways: &[Way::Stdio(&["--ignore-robots-txt"])],
        modes: BOTH,
    },
];

pub(crate) fn command(mut args: Args) -> Outcome {
    let only = args.value("--only")?.unwrap_or_default();
    args.finish()?;
    let tools = tools::install()?;
    let published = tools::install_servers()?;
    interop::copy_scripts(&tools)?;
    let driver = fixture::build_of("trunkline-interop", "real-servers")?;
    let binary = fixture::build_of("trunkline-cli", "trunkline")?;
    let results = fixture::results_folder("servers")?;
    let mut table = Table::new(&["server", "transport", "mode", "driven by", "passed", "failed"]);
    let mut bad = Vec::new();
    for server in SERVERS {
        for way in server.ways {
            for mode in server.modes {
                for (by, binary) in [("the SDK", None), ("the command", Some(&binary))] {
                    let name = format!("{}-{}-{mode}-{}", server.name, way.name(), by.replace(' ', "-"));
                    if !name.contains(&only) {
                        continue;
                    }
                    println!("{} over {} in mode {mode}, by {by}", server.name, way.name());
                    let line = server.line(&tools, &published);
                    let one = One { server, way: *way, mode, binary, driver: &driver, results: &results };
                    let (summary, sound) = one.run(&line, &name)?;
                    table.row(vec![
                        server.name.to_owned(),
                        way.name().to_owned(),
                        (*mode).to_owned(),
                        by.to_owned(),
                        summary.passed.to_string(),
                        summary.failed.to_string(),
                    ]);
                    if !sound {
                        bad.push(name);
                    }
                }
            }
        }
    }
    print!("\n{}", table.render());
    println!("Everything that was printed is in {}.", results.display());
    if bad.is_empty() { Ok(()) } else { Err(format!("not content: {}", bad.join(", ")).into()) }
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(path) | Self::Listening(_, path) => {
                if path == "/sse" {
                    "sse"
                } else {
                    "http"
                }
            }
        }
    }
}

impl Server {
    /// Returns the command line, without what depends on the way.
    fn line(&self, tools: &Tools, published: &Path) -> Vec<OsString> {
        let python = |script: &str| root().join("interop/python").join(script);
        let words: Vec<PathBuf> = match self.program {
            Program::NodeScript(script) => vec![tools.node.clone(), tools.node_folder.join(script)],
            Program::PythonScript(script, Generation::First) => vec![tools.python_v1.clone(), python(script)],
            Program::PythonScript(script, Generation::Second) => {
                vec![tools.python_v2.clone(), python(script)]
            }
            Program::NodePackage(file) => vec![
                tools.node.clone(),
                tools.node_folder.join("node_modules/@modelcontextprotocol").join(file),
            ],
            Program::PythonPackage(command) => vec![published.join(command)],
        };
        words.into_iter().map(PathBuf::into_os_string).collect()
    }
}

/// One run of the driver.
struct One<'a> {
    server: &'a Server,
    way: Way,
    mode: &'a str,
    binary: Option<&'a PathBuf>,
    driver: &'a Path,
    results: &'a Path,
}

impl One<'_> {
    fn run(&self, line: &[OsString], name: &str) -> Outcome<(Summary, bool)> {
        let scratch = self.results.join(format!("{name}.scratch"));
        fs::create_dir_all(&scratch)?;
        let mut driver = run::command(self.driver);
        driver.args(["--server", self.server.name, "--mode", self.mode, "--scratch"]).arg(&scratch);
        if let Some(binary) = self.binary {
            driver.arg("--binary").arg(binary);
        }
        let log = self.results.join(format!("{name}.log"));
        // A server that listens lives as long as this value.
        let _listening = match self.way {
            Way::Stdio(arguments) => {
                driver.arg("--").args(line).args(arguments);
                None
            }
            Way::Http(path) => {
                let address = fixture::free_address()?;
                driver.args(["--url", &format!("http://{address}{path}")]);
                Some(self.listen(line, &["--http", &address.port().to_string()], address)?)
            }
            Way::Listening(arguments, path) => {
                let address = fixture::free_address()?;
                driver.args(["--url", &format!("http://{address}{path}")]);
                Some(self.listen(line, arguments, address)?)
            }
        };
        interop::run_driver(&mut driver, &log, DRIVER_LIMIT)
    }

    fn listen(&self, line: &[OsString], arguments: &[&str], address: SocketAddr) -> Outcome<Running> {
        let (program, rest) = line.split_first().ok_or("a server has no program")?;
        let mut command: Command = run::command(program);
        command.args(rest).args(arguments).env("PORT", address.port().to_string());
        command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut running = Running::start(&mut command)?;
        running
            .wait_until(START_LIMIT, || TcpStream::connect(address).is_ok())
            .map_err(|error| format!("{} did not start on {address}: {error}", self.server.name))?;
        Ok(running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_of_ours_is_there_and_no_server_is_named_twice() {
        for (at, server) in SERVERS.iter().enumerate() {
            let script = match server.program {
                Program::NodeScript(script) => Some(format!("interop/node/{script}")),
                Program::PythonScript(script, _) => Some(format!("interop/python/{script}")),
                Program::NodePackage(_) | Program::PythonPackage(_) => None,
            };
            assert!(script.is_none_or(|script| root().join(script).exists()), "{}", server.name);
            assert!(!server.ways.is_empty() && !server.modes.is_empty(), "{}", server.name);
            assert!(SERVERS.iter().skip(at + 1).all(|other| other.name != server.name), "{}", server.name);
        }
    }
}
