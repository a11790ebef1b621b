//! The hub of a folder, started without flags, and what a person does to it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::run::{self, BackgroundProcess};
use crate::{TaskResult, fixture};

/// Where a hub listens without `--http`.
const DEFAULT_ADDRESS: &str = "127.0.0.1:7411";

/// What has not happened by then never will.
pub(super) const EVENT_TIMEOUT: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(100);

pub(super) struct SmokeHub {
    running: BackgroundProcess,
    address: String,
    binary: PathBuf,
    folder: PathBuf,
    log: PathBuf,
}

impl SmokeHub {
    /// Starts it in the folder and waits until it listens.
    pub(super) fn start(binary: &Path, folder: &Path, log: &Path) -> TaskResult<Self> {
        let address = choose_address()?;
        let output = File::create(log)?;
        let mut command = run::command(binary);
        command.args(["serve", "--trust"]);
        if address != DEFAULT_ADDRESS {
            command.args(["--http", &address]);
        }
        command.current_dir(folder).stdout(output.try_clone()?).stderr(output);
        let mut running = BackgroundProcess::start(&mut command)?;
        running.wait_until(fixture::START_TIMEOUT, || std::net::TcpStream::connect(&address).is_ok())?;
        let (binary, folder, log) = (binary.to_path_buf(), folder.to_path_buf(), log.to_path_buf());
        Ok(Self { running, address, binary, folder, log })
    }

    /// Returns the URL of its endpoint.
    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Runs the command in the folder, as a person would.
    pub(super) fn run_command(&self, words: &[&str]) -> TaskResult<String> {
        run::output(run::command(&self.binary).args(words).current_dir(&self.folder))
    }

    /// Reports whether its log has these words.
    pub(super) fn has_logged(&self, words: &str) -> TaskResult<bool> {
        Ok(fs::read_to_string(&self.log)?.contains(words))
    }

    /// Changes the servers of the file by hand.
    pub(super) fn edit(&self, change: impl FnOnce(&mut Value)) -> TaskResult {
        let path = self.folder.join("mcp.json");
        let mut file: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
        change(&mut file);
        Ok(fs::write(path, format!("{file:#}\n"))?)
    }

    /// Writes what no configuration is.
    pub(super) fn corrupt_config(&self) -> TaskResult<String> {
        let path = self.folder.join("mcp.json");
        let before = fs::read_to_string(&path)?;
        fs::write(&path, before.replacen('{', "{ \"mcpServers\": 7,", 1))?;
        Ok(before)
    }

    pub(super) fn restore(&self, text: &str) -> TaskResult {
        Ok(fs::write(self.folder.join("mcp.json"), text)?)
    }

    /// Returns the processes below the hub with these words in their command line.
    pub(super) fn children(&self, words: &str) -> Vec<u32> {
        descendants(self.running.id()).into_iter().filter(|id| command_line(*id).contains(words)).collect()
    }

    /// Returns every process below the hub.
    pub(super) fn descendants(&self) -> Vec<u32> {
        descendants(self.running.id())
    }

    /// Ends it as an operator would and waits.
    pub(super) fn stop(mut self) -> TaskResult {
        self.running.terminate(EVENT_TIMEOUT).map_err(|error| format!("the hub: {error}").into())
    }
}

/// Returns the default address, or a free one beside a hub of the developer that has it.
fn choose_address() -> TaskResult<String> {
    match std::net::TcpListener::bind(DEFAULT_ADDRESS) {
        Ok(_) => Ok(DEFAULT_ADDRESS.to_owned()),
        Err(_) => Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string()),
    }
}

/// Waits for something to become so.
pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> TaskResult<bool>) -> TaskResult {
    let deadline = Instant::now() + EVENT_TIMEOUT;
    while !is_so()? {
        if Instant::now() > deadline {
            return Err(format!("it never came to pass that {what}").into());
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Reports whether a process is there and has not ended.
pub(super) fn is_alive(id: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    state
        .rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']) && !rest.is_empty())
}

fn command_line(id: u32) -> String {
    let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

fn descendants(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
            found.push(child);
            found.extend(descendants(child));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoke_hub_takes_another_port_if_the_default_one_is_in_use() {
        let taken = std::net::TcpListener::bind(DEFAULT_ADDRESS);
        let address = choose_address().unwrap();
        // The default port is in use, by this test or by a hub beside it.
        assert_ne!(address, DEFAULT_ADDRESS);
        drop(taken);
    }
}
