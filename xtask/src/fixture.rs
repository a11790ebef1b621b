//! Builds and starts the fixtures of `conformance/` that the suites are run against.

use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::run::{self, BackgroundProcess};
use crate::{TaskResult, root};

pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(20);

/// Builds one binary of `trunkline-conformance` and returns its path.
///
/// It is the build of the tests: suites check the output of a program, and not its speed.
pub(crate) fn build(binary: &str) -> TaskResult<PathBuf> {
    build_of("trunkline-conformance", binary)
}

/// Builds one binary of a package in the same way.
pub(crate) fn build_of(package: &str, binary: &str) -> TaskResult<PathBuf> {
    build_with(&["--package", package, "--bin", binary], binary, &[])
}

/// Builds one program of a package, `--bin` or `--example`, as users run it, and returns its path.
pub(crate) fn build_release(package: &str, kind: &str, binary: &str) -> TaskResult<PathBuf> {
    build_with(&["--release", "--package", package, kind, binary], binary, &[])
}

/// Builds the server or a client on rmcp, which have a workspace of their own.
pub(crate) fn build_rmcp(binary: &str) -> TaskResult<PathBuf> {
    let target = root().join("target/rmcp").display().to_string();
    // Beside the target folder of the toolkit, so that neither build waits for the other.
    let options = ["--manifest-path", "interop/rmcp-server/Cargo.toml", "--locked", "--bin", binary];
    build_with(&options, binary, &[("CARGO_TARGET_DIR", &target)])
}

/// Builds one program with options and variables for cargo, and returns its path.
pub(crate) fn build_with(options: &[&str], binary: &str, variables: &[(&str, &str)]) -> TaskResult<PathBuf> {
    let mut cargo = run::cargo();
    cargo.arg("build").args(options).arg("--message-format=json-render-diagnostics");
    cargo.envs(variables.iter().copied());
    let messages = run::output(&mut cargo)?;
    // Cargo prints the path of the binary, which depends on the settings of the machine.
    let executable =
        messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
            let ours = message.get("target")?.get("name")? == binary;
            message.get("executable")?.as_str().filter(|_| ours).map(PathBuf::from)
        });
    executable.ok_or_else(|| format!("cargo built no binary `{binary}`").into())
}

/// The fixture server, listening; it ends when this value goes.
#[derive(Debug)]
pub(crate) struct FixtureServer {
    running: BackgroundProcess,
    address: SocketAddr,
}

impl FixtureServer {
    /// Starts the binary on a free port and waits until it listens.
    pub(crate) fn start(binary: &Path) -> TaskResult<Self> {
        Self::start_by(|address| {
            let mut command = run::command(binary);
            command.arg("--http").arg(address.to_string());
            command
        })
    }

    /// Starts the command `trunkline` as a bridge in front of a server, and waits until it listens.
    pub(crate) fn start_bridge(binary: &Path, url: &str) -> TaskResult<Self> {
        // Its hints for users do not belong to the log of a run.
        let log = File::options().create(true).append(true).open(root().join("target/bridge.log"))?;
        Self::start_by(|address| {
            let mut command = run::command(binary);
            command.args(["bridge", "--log-level", "warn", "--http", &address.to_string(), url]);
            command.stderr(log);
            command
        })
    }

    /// Starts what a function makes of a free address, and waits until it listens there.
    pub(crate) fn start_by(command: impl FnOnce(SocketAddr) -> Command) -> TaskResult<Self> {
        let address = free_address()?;
        let mut command = command(address);
        let mut running = BackgroundProcess::start(&mut command)?;
        running
            .wait_until(START_TIMEOUT, || run::is_listening(address))
            .map_err(|error| format!("`{}` did not start: {error}", run::line(&command)))?;
        Ok(Self { running, address })
    }

    /// Sends the server SIGTERM, as an operator would, and waits for its end.
    pub(crate) fn stop(mut self, limit: Duration) -> TaskResult {
        self.running
            .terminate(limit)
            .map_err(|error| format!("the server at {}: {error}", self.address).into())
    }

    /// Returns the process.
    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, scheme: &str, path: &str) -> String {
        format!("{scheme}://{}{path}", self.address)
    }
}

/// Makes an empty folder for the results of one command, under `target/`.
pub(crate) fn results_folder(name: &str) -> TaskResult<PathBuf> {
    let folder = root().join("target").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

pub(crate) fn free_address() -> TaskResult<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
