use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal};

/// How many descendants are looked at; a child that starts more than this is ended as far as its group goes.
const MAX_DESCENDANTS: usize = 4096;

/// A process that descends from a child and is not in the child's group any more.
pub(super) struct StrayProcess {
    /// Names exactly this process, even after it has ended and its number is taken by another.
    descriptor: OwnedFd,
}

impl StrayProcess {
    pub(super) fn signal(&self, signal: Signal) {
        // An error means that it has ended, or has become another user's.
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
        // We have the other end of each.
        if id == rustix::process::getpid() || !holds() {
            continue;
        }
        // What is named now may be another process than the one that was looked at, so this looks once more.
        if let Ok(descriptor) = rustix::process::pidfd_open(id, PidfdFlags::empty())
            && holds()
        {
            holders.push(StrayProcess { descriptor });
        }
    }
    holders
}

/// Lists the children of a process, of each of its threads, as far as the kernel tells.
fn children(parent: Pid) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero()));
    let mut found = Vec::new();
    for thread in threads.into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(text.split_ascii_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)));
    }
    found
}
