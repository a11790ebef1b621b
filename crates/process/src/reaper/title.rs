//! The command line of the reaper, as `ps` shows it. A fork has that of its parent, and would look like a second one.

use rustix::fs::{Mode, OFlags};

/// What `ps` shows.
const TITLE: &[u8] = b"trunkline-guard";

/// The bytes that replace the command line of a fork of this process.
pub(super) struct ProcessTitle {
    /// Where the arguments are in memory.
    start: u64,
    /// As long as the arguments, with a NUL at the end, so that the kernel shows no more than this.
    bytes: Vec<u8>,
}

impl ProcessTitle {
    /// Allocates what a fork needs, which must not allocate. `None` if the place of the arguments is unknown.
    pub(super) fn new() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The program's name may contain spaces and parentheses; the state after it is field 3 of proc_pid_stat(5).
        let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(48 - 3);
        let start: u64 = fields.next()?.parse().ok()?;
        let end: u64 = fields.next()?.parse().ok()?;
        let length = usize::try_from(end.checked_sub(start)?).ok()?;
        let mut bytes = vec![0; length];
        let shown = TITLE.len().min(length.saturating_sub(1));
        bytes.get_mut(..shown)?.copy_from_slice(TITLE.get(..shown)?);
        Some(Self { start, bytes })
    }

    /// Replaces the command line of this process, which must be a fork. Without `/proc` it stays as it is.
    pub(super) fn show(&self) {
        // The file can be written wherever the arguments are, and an address that is not mapped is an error.
        let Ok(memory) = rustix::fs::open(c"/proc/self/mem", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
        else {
            return;
        };
        let _ = rustix::io::pwrite(&memory, &self.bytes, self.start);
    }
}
