//! What the guard does when we are gone. Nothing in here allocates, takes a lock or panics.

use std::ffi::CStr;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::process::{Pid, Signal};

use super::super::census::MOST_CHILDREN;
use super::roll::{Member, ROLL_BYTES, members};

/// How many processes can be kept in mind. Members of groups are ended however many they are.
const MOST_DOOMED: usize = 4096;

/// How long one round waits for processes to end.
const ROUND: Duration = Duration::from_millis(20);

/// How long processes are asked to end before they are made to.
const GRACE: Duration = Duration::from_secs(2);

/// When a process that cannot even be killed is left alone.
const GIVEN_UP: Duration = Duration::from_secs(10);

/// How deep descendants are looked for in one round.
const GENERATIONS: usize = 64;

/// The memory that the guard works in.
pub(super) struct Scratch {
    roll: Box<[u8]>,
    members: Vec<Member>,
    doomed: Vec<Doomed>,
    names: Box<[MaybeUninit<u8>]>,
}

/// A process that has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doomed {
    id: u64,
    /// When it began: a process of the same number that began at another time is a stranger.
    began: u64,
    asked: bool,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self {
            roll: vec![0; ROLL_BYTES].into(),
            members: Vec::with_capacity(MOST_CHILDREN),
            doomed: Vec::with_capacity(MOST_DOOMED),
            names: vec![MaybeUninit::uninit(); 16 * 1024].into(),
        }
    }
}

/// Ends everything that is on the roll, and what descends from it.
pub(super) fn end_all(roll: BorrowedFd<'_>, scratch: &mut Scratch) {
    if read_all(roll, &mut scratch.roll).is_none() {
        return;
    }
    // There is room for as many as a roll can have.
    scratch.members.extend(members(&scratch.roll).take(MOST_CHILDREN));
    if scratch.members.is_empty() {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(proc) = rustix::fs::open(c"/proc", flags, Mode::empty()) else {
        // Without it only the groups can be found.
        end_groups(&scratch.members);
        return;
    };
    let began = Instant::now();
    while began.elapsed() < GIVEN_UP {
        scratch.doomed.retain(|doomed| is_there(&proc, doomed));
        find(&proc, scratch);
        if scratch.doomed.is_empty() {
            return;
        }
        if began.elapsed() < GRACE {
            ask(&mut scratch.doomed);
        } else {
            end_groups(&scratch.members);
            scratch.doomed.iter().for_each(|doomed| send(doomed.id, Signal::KILL));
        }
        std::thread::sleep(ROUND);
    }
}

/// Asks every process once; one that ends in its own time must not believe that somebody is impatient.
fn ask(doomed: &mut [Doomed]) {
    for doomed in doomed.iter_mut().filter(|doomed| !doomed.asked) {
        send(doomed.id, Signal::TERM);
        doomed.asked = true;
    }
}

fn end_groups(members: &[Member]) {
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

/// Adds to the doomed who is in a group of the roll, who holds one of its pipes, and who descends from a doomed one.
fn find(proc: &OwnedFd, scratch: &mut Scratch) {
    // Whoever took us in when our parent ended took in others too, and is the last who may be taken for a child.
    let spared = [1, u64::from(std::process::id()), u64::from(std::os::unix::process::parent_id())];
    for _ in 0..GENERATIONS {
        let before = scratch.doomed.len();
        let Scratch { members, doomed, names, .. } = scratch;
        for_each_process(proc, names, |id| {
            let known = spared.contains(&id) || doomed.iter().any(|known| known.id == id);
            if known || doomed.len() == doomed.capacity() {
                return;
            }
            let Some(stat) = Stat::read(proc, id).filter(|stat| !stat.is_over) else { return };
            if stat.belongs_to(members, doomed) || holds_pipe(proc, id, members) {
                doomed.push(Doomed { id, began: stat.began, asked: false });
            }
        });
        if scratch.doomed.len() == before {
            return;
        }
    }
}

fn is_there(proc: &OwnedFd, doomed: &Doomed) -> bool {
    Stat::read(proc, doomed.id).is_some_and(|stat| stat.began == doomed.began && !stat.is_over)
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

/// Tells whether one of a process's standard descriptors is a pipe of the roll.
fn holds_pipe(proc: &OwnedFd, id: u64, members: &[Member]) -> bool {
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

/// What the kernel says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u64,
    group: u64,
    began: u64,
    /// It is a zombie, or about to be nothing at all.
    is_over: bool,
}

impl Stat {
    fn read(proc: &OwnedFd, id: u64) -> Option<Self> {
        let mut path = [0; 48];
        let path = write_path(&mut path, format_args!("{id}/stat\0"))?;
        let file =
            rustix::fs::openat(proc.as_fd(), path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let mut text = [0; 1024];
        let length = rustix::io::read(&file, &mut text).ok()?;
        Self::parse(text.get(..length)?)
    }

    /// Tells whether the process is in a group of the roll, or a child of a doomed one.
    fn belongs_to(&self, members: &[Member], doomed: &[Doomed]) -> bool {
        // A child that we did not live to know the group of has 0 there, and so have the kernel's own processes.
        let in_group = self.group != 0 && members.iter().any(|member| member.group == self.group);
        in_group || doomed.iter().any(|known| known.id == self.parent)
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
        Some(Self { parent, group, began, is_over: matches!(state, b"Z" | b"X" | b"x") })
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
    fn only_members_of_a_known_group_and_children_of_the_doomed_belong_to_the_roll() {
        let member = |group| Member { group, pipes: [1, 2] };
        let stat = |parent, group| Stat { parent, group, began: 0, is_over: false };
        let doomed = [Doomed { id: 70, began: 0, asked: false }];
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
            assert_eq!(stat.belongs_to(&[member(50), member(0)], &doomed), expected, "{stat:?}");
        }
    }

    #[test]
    fn the_line_of_a_process_is_read_whatever_its_name_is() {
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
            let stat = Stat::parse(text.as_bytes());
            assert_eq!(
                stat.map(|stat| (stat.parent, stat.group, stat.began, stat.is_over)),
                expected,
                "{text}"
            );
        }
        let proc = std::fs::File::open("/proc").unwrap().into();
        let own = Stat::read(&proc, std::process::id().into()).unwrap();
        assert_eq!(own.parent, u64::from(std::os::unix::process::parent_id()));
    }
}
