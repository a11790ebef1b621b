use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal};

/// The most descendants that are examined; beyond that only the child's group is terminated.
const MAX_DESCENDANTS: usize = 4096;

/// A descendant of a child that left the child's group.
pub(super) struct StrayProcess {
    /// A pidfd: it refers to exactly this process, even after its exit and a reuse of its id.
    descriptor: OwnedFd,
}

impl StrayProcess {
    pub(super) fn signal(&self, signal: Signal) {
        // An error means that the process has exited, or belongs to another user now.
        let _ = rustix::process::pidfd_send_signal(&self.descriptor, signal);
    }
}

/// Finds the descendants of a group's leader that left the group, by a new session or for job control.
pub(super) fn strays(leader: Pid) -> Vec<StrayProcess> {
    let mut strays = Vec::new();
    let mut seen = vec![leader];
    let mut next = 0;
    while let Some(parent) = seen.get(next).copied() {
        next += 1;
        for child in children(parent) {
            if seen.len() >= MAX_DESCENDANTS {
                return strays;
            }
            seen.push(child);
            if rustix::process::getpgid(Some(child)).is_ok_and(|group| group != leader) {
                let descriptor = rustix::process::pidfd_open(child, PidfdFlags::empty());
                strays.extend(descriptor.map(|descriptor| StrayProcess { descriptor }));
            }
        }
    }
    strays
}

/// Finds the processes that have one of these pipes as a standard descriptor.
pub(super) fn pipe_holders(pipes: [u64; 2]) -> Vec<StrayProcess> {
    let names = pipes.map(|inode| std::path::PathBuf::from(format!("pipe:[{inode}]")));
    let mut holders = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?)) else {
            continue;
        };
        let holds = || {
            let mut targets =
                (0..3).filter_map(|fd| std::fs::read_link(entry.path().join(format!("fd/{fd}"))).ok());
            targets.any(|target| names.contains(&target))
        };
        // This process holds the other end of each pipe.
        if id == rustix::process::getpid() || !holds() {
            continue;
        }
        // The id may have been reused since the first check, so it is repeated once the pidfd is open.
        if let Ok(descriptor) = rustix::process::pidfd_open(id, PidfdFlags::empty())
            && holds()
        {
            holders.push(StrayProcess { descriptor });
        }
    }
    holders
}

/// Lists the children of a process, of each of its threads, as far as `/proc` has them.
fn children(parent: Pid) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    let mut found = Vec::new();
    for thread in threads.into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(text.split_ascii_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)));
    }
    found
}
