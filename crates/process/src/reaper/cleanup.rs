//! The reaper's work after the parent's exit. Nothing in here allocates, takes a lock or panics.

use std::ffi::CStr;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::process::{Pid, Signal};

use super::super::child_counter::MAX_CHILDREN;
use super::group_table::{GroupRecord, TABLE_BYTES, records};

/// The most processes that are tracked. Members of process groups are killed whatever their number.
const MAX_KILL_TARGETS: usize = 4096;

/// The pause between two rounds.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The grace period between `SIGTERM` and `SIGKILL`.
const GRACE: Duration = Duration::from_secs(2);

/// The time after which processes that even `SIGKILL` does not end are given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// The most generations of descendants that are searched in one round.
const MAX_GENERATIONS: usize = 64;

/// The preallocated memory of the reaper.
pub(super) struct ReaperScratch {
    table: Box<[u8]>,
    groups: Vec<GroupRecord>,
    targets: Vec<KillTarget>,
    names: Box<[MaybeUninit<u8>]>,
}

/// A process to terminate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KillTarget {
    id: u64,
    /// The start time: a process with the same id and another start time is a different one.
    start_time: u64,
    terminated: bool,
}

impl ReaperScratch {
    pub(super) fn new() -> Self {
        Self {
            table: vec![0; TABLE_BYTES].into(),
            groups: Vec::with_capacity(MAX_CHILDREN),
            targets: Vec::with_capacity(MAX_KILL_TARGETS),
            names: vec![MaybeUninit::uninit(); 16 * 1024].into(),
        }
    }
}

/// Terminates all process groups of the group table, and their descendants.
pub(super) fn kill_all(table: BorrowedFd<'_>, scratch: &mut ReaperScratch) {
    if read_all(table, &mut scratch.table).is_none() {
        return;
    }
    // The capacity is that of the group table.
    scratch.groups.extend(records(&scratch.table).take(MAX_CHILDREN));
    if scratch.groups.is_empty() {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(proc) = rustix::fs::open(c"/proc", flags, Mode::empty()) else {
        // Without `/proc` only the groups can be found.
        kill_groups(&scratch.groups);
        return;
    };
    let began = Instant::now();
    while began.elapsed() < GIVE_UP_AFTER {
        scratch.targets.retain(|target| is_alive(&proc, target));
        find_targets(&proc, scratch);
        if scratch.targets.is_empty() {
            return;
        }
        if began.elapsed() < GRACE {
            terminate_once(&mut scratch.targets);
        } else {
            kill_groups(&scratch.groups);
            scratch.targets.iter().for_each(|target| send(target.id, Signal::KILL));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Sends `SIGTERM` once to every process; many programs abort their shutdown on a second one.
fn terminate_once(targets: &mut [KillTarget]) {
    for target in targets.iter_mut().filter(|target| !target.terminated) {
        send(target.id, Signal::TERM);
        target.terminated = true;
    }
}

fn kill_groups(members: &[GroupRecord]) {
    for group in members.iter().filter_map(|member| pid(member.group)) {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
}

fn send(id: u64, signal: Signal) {
    if let Some(id) = pid(id) {
        let _ = rustix::process::kill_process(id, signal);
    }
}

fn pid(number: u64) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Adds the processes that are in a group of the table, hold one of its pipes, or descend from a target.
fn find_targets(proc: &OwnedFd, scratch: &mut ReaperScratch) {
    // The process that adopted the reaper when its parent exited may have adopted our children too; it must never
    // count as a descendant itself.
    let spared = [1, u64::from(std::process::id()), u64::from(std::os::unix::process::parent_id())];
    for _ in 0..MAX_GENERATIONS {
        let before = scratch.targets.len();
        let ReaperScratch { groups: members, targets, names, .. } = scratch;
        for_each_process(proc, names, |id| {
            let known = spared.contains(&id) || targets.iter().any(|known| known.id == id);
            if known || targets.len() == targets.capacity() {
                return;
            }
            let Some(stat) = ProcStat::read(proc, id).filter(|stat| !stat.has_exited) else { return };
            if stat.belongs_to(members, targets) || holds_pipe(proc, id, members) {
                targets.push(KillTarget { id, start_time: stat.start_time, terminated: false });
            }
        });
        if scratch.targets.len() == before {
            return;
        }
    }
}

fn is_alive(proc: &OwnedFd, target: &KillTarget) -> bool {
    ProcStat::read(proc, target.id)
        .is_some_and(|stat| stat.start_time == target.start_time && !stat.has_exited)
}

fn for_each_process(proc: &OwnedFd, names: &mut [MaybeUninit<u8>], mut visit: impl FnMut(u64)) {
    if rustix::fs::seek(proc, rustix::fs::SeekFrom::Start(0)).is_err() {
        return;
    }
    let mut entries = RawDir::new(proc, names);
    while let Some(Ok(entry)) = entries.next() {
        if let Some(id) = number(entry.file_name().to_bytes()) {
            visit(id);
        }
    }
}

/// Reports whether one of a process's standard descriptors is a pipe of the group table.
fn holds_pipe(proc: &OwnedFd, id: u64, members: &[GroupRecord]) -> bool {
    (0..3).any(|fd| {
        let mut path = [0; 48];
        let mut target = [0; 64];
        let Some(path) = write_path(&mut path, format_args!("{id}/fd/{fd}\0")) else { return false };
        let Ok(target) = read_link(proc, path, &mut target) else { return false };
        let inode = target.strip_prefix(b"pipe:[").and_then(|rest| number(rest.strip_suffix(b"]")?));
        inode.is_some_and(|inode| members.iter().any(|member| member.pipes.contains(&inode)))
    })
}

fn read_link<'a>(proc: &OwnedFd, path: &CStr, target: &'a mut [u8]) -> rustix::io::Result<&'a [u8]> {
    let length = rustix::fs::readlinkat_raw(proc, path, &mut *target)?;
    Ok(target.get(..length).unwrap_or_default())
}

/// The fields of `/proc/PID/stat` that matter here.
#[derive(Debug, PartialEq, Eq)]
struct ProcStat {
    parent: u64,
    group: u64,
    start_time: u64,
    /// The process is a zombie or dead.
    has_exited: bool,
}

impl ProcStat {
    fn read(proc: &OwnedFd, id: u64) -> Option<Self> {
        let mut path = [0; 48];
        let path = write_path(&mut path, format_args!("{id}/stat\0"))?;
        let file =
            rustix::fs::openat(proc.as_fd(), path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut text = [0; 1024];
        let length = rustix::io::read(&file, &mut text).ok()?;
        Self::parse(text.get(..length)?)
    }

    /// Reports whether the process is in a group of the table, or a child of a target.
    fn belongs_to(&self, members: &[GroupRecord], targets: &[KillTarget]) -> bool {
        // The group is 0 if the parent exited before it recorded it, and kernel threads have group 0 too.
        let in_group = self.group != 0 && members.iter().any(|member| member.group == self.group);
        in_group || targets.iter().any(|known| known.id == self.parent)
    }

    /// Reads `id (name) state parent group …`; the name may have blanks and parentheses of its own.
    fn parse(text: &[u8]) -> Option<Self> {
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let mut fields = text.get(name_end + 1..)?.split(|byte| *byte == b' ').skip(1);
        let state = fields.next()?;
        let parent = number(fields.next()?)?;
        let group = number(fields.next()?)?;
        // The twenty-second field counting from the id, which is the seventeenth after the group.
        let began = number(fields.nth(16)?)?;
        Some(Self { parent, group, start_time: began, has_exited: matches!(state, b"Z" | b"X" | b"x") })
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn write_path<'a>(buffer: &'a mut [u8], path: std::fmt::Arguments<'_>) -> Option<&'a CStr> {
    (&mut *buffer).write_fmt(path).ok()?;
    CStr::from_bytes_until_nul(buffer).ok()
}

/// Fills a buffer from the beginning of a file, as far as the file goes.
fn read_all(file: BorrowedFd<'_>, buffer: &mut [u8]) -> Option<()> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, done as u64) {
            Ok(0) => return Some(()),
            Ok(count) => done += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reaper_targets_are_group_members_and_children_of_targets() {
        let member = |group| GroupRecord { group, pipes: [1, 2] };
        let stat = |parent, group| ProcStat { parent, group, start_time: 0, has_exited: false };
        let targets = [KillTarget { id: 70, start_time: 0, terminated: false }];
        let table = [
            (stat(1, 50), true),
            (stat(70, 60), true),
            (stat(1, 60), false),
            (stat(1, 70), false),
            // The first process, and the kernel's: without a group, as a child that is just being started.
            (stat(0, 0), false),
            (stat(2, 0), false),
        ];
        for (stat, expected) in table {
            assert_eq!(stat.belongs_to(&[member(50), member(0)], &targets), expected, "{stat:?}");
        }
    }

    #[test]
    fn proc_stat_is_parsed_with_any_process_name() {
        let rest = "4 5 6 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 9 9 9";
        let table = [
            (format!("1 (sh) S {rest}"), Some((4, 5, 12345, false))),
            (format!("1 (a) Z 1 2 (b) Z {rest}"), Some((4, 5, 12345, true))),
            (format!("1 (()) ) R {rest}"), Some((4, 5, 12345, false))),
            ("1 (sh) S 4 5".to_owned(), None),
            ("1 (sh".to_owned(), None),
            (String::new(), None),
        ];
        for (text, expected) in table {
            let stat = ProcStat::parse(text.as_bytes());
            assert_eq!(
                stat.map(|stat| (stat.parent, stat.group, stat.start_time, stat.has_exited)),
                expected,
                "{text}"
            );
        }
        let proc = std::fs::File::open("/proc").unwrap().into();
        let own = ProcStat::read(&proc, std::process::id().into()).unwrap();
        assert_eq!(own.parent, u64::from(std::os::unix::process::parent_id()));
    }
}
