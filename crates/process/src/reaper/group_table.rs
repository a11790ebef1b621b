use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::fs::MemfdFlags;
use rustix::process::Pid;

use super::super::child_counter::MAX_CHILDREN;

/// The size of one entry: the group, then the inodes of the two output pipes of its members.
const ENTRY_BYTES: usize = 24;

/// The size of the whole table.
pub(super) const TABLE_BYTES: usize = MAX_CHILDREN * ENTRY_BYTES;

/// The table of process groups that the reaper terminates, in shared memory.
struct GroupTable {
    file: File,
    free: Mutex<FreeSlots>,
}

/// The unused slots; those from `unused` on were never used.
struct FreeSlots {
    returned: Vec<usize>,
    unused: usize,
}

static GROUP_TABLE: OnceLock<GroupTable> = OnceLock::new();

fn group_table() -> io::Result<&'static GroupTable> {
    if let Some(table) = GROUP_TABLE.get() {
        return Ok(table);
    }
    let file = rustix::fs::memfd_create(c"trunkline-children", MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, TABLE_BYTES as u64)?;
    let free = Mutex::new(FreeSlots { returned: Vec::new(), unused: 0 });
    // If another thread was faster, its table is used.
    Ok(GROUP_TABLE.get_or_init(|| GroupTable { file: file.into(), free }))
}

/// The slot of one child in the group table.
#[derive(Debug)]
pub(in super::super) struct GroupSlot {
    index: usize,
    pipes: [u64; 2],
}

impl GroupSlot {
    /// Adds a child before its start, with its output pipes, and starts the reaper unless it is running.
    ///
    /// # Errors
    /// The reaper is not running and cannot be started.
    pub(in super::super) fn new(pipes: [&OwnedFd; 2]) -> io::Result<Self> {
        let table = group_table()?;
        super::ensure_running(table.file.as_fd())?;
        let [stdout, stderr] = pipes;
        let pipes = [rustix::fs::fstat(stdout)?.st_ino, rustix::fs::fstat(stderr)?.st_ino];
        let index = {
            let mut free = table.free.lock();
            free.returned.pop().unwrap_or_else(|| {
                free.unused += 1;
                free.unused - 1
            })
        };
        // There are never more slots than children: the caller holds a `ChildPermit`.
        let entry = Self { index, pipes };
        entry.write(0, pipes)?;
        Ok(entry)
    }

    /// Adds the group of the child, once it has one.
    pub(in super::super) fn set_group(&self, leader: Pid) {
        // The file is in memory and has its full size, so this does not fail.
        let _ = self.write(leader.as_raw_nonzero().get().unsigned_abs().into(), self.pipes);
    }

    /// Removes the group from the table; holders of one of the pipes are still to be killed.
    pub(in super::super) fn clear_group(&self) {
        let _ = self.write(0, self.pipes);
    }

    /// Returns the inodes of the pipes that the child writes to.
    pub(in super::super) fn pipes(&self) -> [u64; 2] {
        self.pipes
    }

    fn write(&self, group: u64, [stdout, stderr]: [u64; 2]) -> io::Result<()> {
        let mut bytes = [0; ENTRY_BYTES];
        for (field, value) in bytes.chunks_exact_mut(8).zip([group, stdout, stderr]) {
            field.copy_from_slice(&value.to_ne_bytes());
        }
        let Some(table) = GROUP_TABLE.get() else { return Ok(()) };
        table.file.write_all_at(&bytes, (self.index * ENTRY_BYTES) as u64)
    }
}

impl Drop for GroupSlot {
    fn drop(&mut self) {
        let _ = self.write(0, [0, 0]);
        if let Some(table) = GROUP_TABLE.get() {
            table.free.lock().returned.push(self.index);
        }
    }
}

/// The entry of one child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupRecord {
    /// The process group, or 0 if the parent exited before it recorded it.
    pub(super) group: u64,
    pub(super) pipes: [u64; 2],
}

/// Returns the used entries of a table.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = GroupRecord> {
    bytes.chunks_exact(ENTRY_BYTES).filter_map(|entry| {
        let mut numbers = entry.chunks_exact(8).map(|number| number.try_into().map_or(0, u64::from_ne_bytes));
        let member = GroupRecord { group: numbers.next()?, pipes: [numbers.next()?, numbers.next()?] };
        (member.pipes != [0, 0]).then_some(member)
    })
}
