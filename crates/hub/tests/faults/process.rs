//! Processes, as the system shows them.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessUsage {
    /// Memory in KiB.
    pub(crate) memory: usize,
    /// Open files and sockets.
    pub(crate) descriptors: usize,
    /// Processes that it started, zombies among them.
    pub(crate) children: usize,
    pub(crate) zombies: usize,
    /// Tasks of its runtime.
    pub(crate) tasks: usize,
}

impl fmt::Display for ProcessUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = self.memory as f64 / 1024.0;
        write!(
            f,
            "{mebibytes:.1} MiB, {} descriptors, {} tasks, {} children, {} zombies",
            self.descriptors, self.tasks, self.children, self.zombies
        )
    }
}

/// This program in another role, which ends when the value goes.
pub(crate) struct RoleProcess(Child);

impl RoleProcess {
    /// Starts this program in another role, with pipes if it reads commands.
    pub(crate) fn start(words: &[&str], pipes: bool) -> Self {
        let pipe = || if pipes { Stdio::piped() } else { Stdio::null() };
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self(command.args(words).stdin(pipe()).stdout(pipe()).spawn().unwrap())
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for RoleProcess {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads memory and descriptors of a process, and what it started.
pub(crate) fn held(id: u32, tasks: usize) -> ProcessUsage {
    let memory = trunkline_testing::resident_bytes(id).unwrap() / 1024;
    let descriptors = fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
    let children = children(id);
    let zombies = children.iter().filter(|child| state(**child) == Some('Z')).count();
    ProcessUsage { memory, descriptors, children: children.len(), zombies, tasks }
}

/// Returns the processes that a process started and has not yet buried.
pub(crate) fn children(id: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>()).collect()
}

/// Returns those children of a process that are servers and alive.
pub(crate) fn servers(id: u32) -> Vec<u32> {
    let is_server = |child: &u32| {
        let words = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"upstream") && state(*child) != Some('Z')
    };
    children(id).into_iter().filter(is_server).collect()
}

/// Returns every process of this program that is a server, with any parent.
pub(crate) fn orphans() -> Vec<u32> {
    let own = std::env::current_exe().unwrap();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_server = |id: &u32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let program = fs::read_link(format!("/proc/{id}/exe")).unwrap_or_else(|_| PathBuf::new());
        program == own && words.split(|byte| *byte == 0).nth(1) == Some(b"upstream") && parent(*id) == Some(1)
    };
    ids.filter(is_server).collect()
}

fn parent(id: u32) -> Option<u32> {
    stat(id)?.split_whitespace().nth(1)?.parse().ok()
}

fn state(id: u32) -> Option<char> {
    stat(id)?.chars().next()
}

/// Returns the line of `/proc/PID/stat`, from the state on.
fn stat(id: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned())
}

/// Kills a process as hard as it goes.
pub(crate) fn kill(id: u32) -> bool {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).is_ok()
}
