use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::fs::MemfdFlags;
use rustix::process::Pid;

use super::super::child_counter::MAX_CHILDREN;

/// How many bytes one entry takes: the group, then the inodes of the two pipes that its members write to.
const ENTRY_BYTES: usize = 24;

/// How many bytes the whole roll takes.
pub(super) const TABLE_BYTES: usize = MAX_CHILDREN * ENTRY_BYTES;

/// Who has to be ended when we are gone.
struct GroupTable {
    file: File,
    free: Mutex<FreeSlots>,
}

/// Places that nobody has; those from `unused` on were never taken.
struct FreeSlots {
    returned: Vec<usize>,
    unused: usize,
}

static GROUP_TABLE: OnceLock<GroupTable> = OnceLock::new();

fn group_table() -> io::Result<&'static GroupTable> {
    if let Some(roll) = GROUP_TABLE.get() {
        return Ok(roll);
    }
    let file = rustix::fs::memfd_create(c"trunkline-children", MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, TABLE_BYTES as u64)?;
    let free = Mutex::new(FreeSlots { returned: Vec::new(), unused: 0 });
    // If another thread was faster, its roll is the one.
    Ok(GROUP_TABLE.get_or_init(|| GroupTable { file: file.into(), free }))
}

/// The place of one child in the roll.
#[derive(Debug)]
pub(in super::super) struct GroupSlot {
    index: usize,
    pipes: [u64; 2],
}

impl GroupSlot {
    /// Enters a child that is about to be started, by the pipes that it is going to write to, and makes sure that
    /// somebody guards it.
    ///
    /// # Errors
    /// There is no guard and none can be made.
    pub(in super::super) fn new(pipes: [&OwnedFd; 2]) -> io::Result<Self> {
        let roll = group_table()?;
        super::ensure_running(roll.file.as_fd())?;
        let [stdout, stderr] = pipes;
        let pipes = [rustix::fs::fstat(stdout)?.st_ino, rustix::fs::fstat(stderr)?.st_ino];
        let place = {
            let mut free = roll.free.lock();
            free.returned.pop().unwrap_or_else(|| {
                free.unused += 1;
                free.unused - 1
            })
        };
        // More places than children are never asked for: whoever enters was counted before.
        let entry = Self { index: place, pipes };
        entry.write(0, pipes)?;
        Ok(entry)
    }

    /// Adds the group of the child, once it has one.
    pub(in super::super) fn set_group(&self, leader: Pid) {
        // The file is in memory and has its full size, so this does not fail.
        let _ = self.write(leader.as_raw_nonzero().get().unsigned_abs().into(), self.pipes);
    }

    /// Takes the group off the roll; who has one of the pipes is still to be ended.
    pub(in super::super) fn clear_group(&self) {
        let _ = self.write(0, self.pipes);
    }

    /// Returns the inodes of the pipes that the child writes to.
    pub(in super::super) fn pipes(&self) -> [u64; 2] {
        self.pipes
    }

    fn write(&self, group: u64, [stdout, stderr]: [u64; 2]) -> io::Result<()> {
        let mut bytes = [0; ENTRY_BYTES];
        for (place, value) in bytes.chunks_exact_mut(8).zip([group, stdout, stderr]) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        let Some(roll) = GROUP_TABLE.get() else { return Ok(()) };
        roll.file.write_all_at(&bytes, (self.index * ENTRY_BYTES) as u64)
    }
}

impl Drop for GroupSlot {
    fn drop(&mut self) {
        let _ = self.write(0, [0, 0]);
        if let Some(roll) = GROUP_TABLE.get() {
            roll.free.lock().returned.push(self.index);
        }
    }
}

/// What the guard reads of one child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupRecord {
    /// The process group, or 0 if we ended before we knew it.
    pub(super) group: u64,
    pub(super) pipes: [u64; 2],
}

/// Gives the children that are on a roll.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = GroupRecord> {
    bytes.chunks_exact(ENTRY_BYTES).filter_map(|entry| {
        let mut numbers = entry.chunks_exact(8).map(|number| number.try_into().map_or(0, u64::from_ne_bytes));
        let member = GroupRecord { group: numbers.next()?, pipes: [numbers.next()?, numbers.next()?] };
        (member.pipes != [0, 0]).then_some(member)
    })
}
