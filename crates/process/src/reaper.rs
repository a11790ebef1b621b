//! The reaper: one process that outlives its parent just long enough to terminate the parent's children.
//!
//! It is forked from this process when the first child is started, and only waits for the other end of a socket to
//! close. The parent holds that end and never writes to it, so it closes when the parent exits, for whatever reason.
//! Then the reaper reads the process groups from the [group table](group_table), and [terminates them](cleanup).
//!
//! The group table is a memory file that both processes share: to add a child costs one small write and does not wake
//! the reaper.
//!
//! This is the only file with `unsafe` in it. There is no safe way to create a process that is not another program,
//! and a library has no other program to start.
#![allow(unsafe_code, reason = "see above; each block says why it is sound")]

mod cleanup;
mod group_table;
mod title;

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

use parking_lot::Mutex;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use rustix::process::{Pid, WaitOptions};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::cleanup::ReaperScratch;
pub(super) use self::group_table::GroupSlot;
use self::title::ProcessTitle;

/// The reaper of this process, once it is started.
static REAPER: Mutex<Option<ReaperProcess>> = Mutex::new(None);

struct ReaperProcess {
    id: Pid,
    /// The parent's end: it closes when the parent exits, and reads end-of-file when the reaper exits.
    socket: OwnedFd,
    /// The process that started it: a fork of this process has no part in its reaper.
    parent_pid: u32,
}

/// Starts a reaper, unless one is running.
///
/// # Errors
/// The reaper cannot be started.
fn ensure_running(roll: BorrowedFd<'_>) -> io::Result<()> {
    let mut guard = REAPER.lock();
    if guard.as_ref().is_some_and(ReaperProcess::is_alive) {
        return Ok(());
    }
    if let Some(dead) = guard.take() {
        // The reaper was killed; its successor finds all children in the group table.
        let _ = rustix::process::waitpid(Some(dead.id), WaitOptions::NOHANG);
    }
    *guard = Some(ReaperProcess::start(roll)?);
    Ok(())
}

impl ReaperProcess {
    fn start(roll: BorrowedFd<'_>) -> io::Result<Self> {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The forked process must not allocate, so its memory is allocated here.
        let mut scratch = ReaperScratch::new();
        let highest = highest_descriptor();
        let title = ProcessTitle::new();
        let signals = BlockedSignals::new();
        // SAFETY: the other threads do not exist in the forked process, and their locks stay locked there. It
        // therefore only runs `run_reaper`, which makes system calls on memory that exists already, takes no lock,
        // allocates nothing, never returns and never unwinds. No signal handler runs in it, since all signals are
        // blocked.
        let id = unsafe { libc::fork() };
        if id == 0 {
            run_reaper(theirs.as_fd(), roll, &mut scratch, highest, title.as_ref());
        }
        drop(signals);
        let id = Pid::from_raw(id).filter(|_| id > 0).ok_or_else(io::Error::last_os_error)?;
        drop(theirs);
        // No child starts before the reaper has left this process group and closed its descriptors.
        let ready = rustix::io::retry_on_intr(|| rustix::io::read(&ours, &mut [0]))?;
        if ready == 0 {
            return Err(io::Error::other("the guard ended at once"));
        }
        Ok(Self { id, socket: ours, parent_pid: std::process::id() })
    }

    fn is_alive(&self) -> bool {
        let mut byte = [0];
        // While the reaper runs, a read would block (`EAGAIN`); after its exit the socket is at its end of file.
        let nothing = rustix::net::recv(&self.socket, &mut byte, RecvFlags::DONTWAIT | RecvFlags::PEEK);
        self.parent_pid == std::process::id() && nothing == Err(rustix::io::Errno::AGAIN)
    }
}

/// Runs the reaper.
fn run_reaper(
    socket: BorrowedFd<'_>,
    roll: BorrowedFd<'_>,
    scratch: &mut ReaperScratch,
    highest: RawFd,
    title: Option<&ProcessTitle>,
) -> ! {
    let over = ExitOnDrop;
    // A session of its own protects it from the signals of the parent's terminal and group.
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir(c"/");
    let _ = rustix::thread::set_name(c"trunkline-guard");
    if let Some(title) = title {
        title.show();
    }
    close_others([socket.as_raw_fd(), roll.as_raw_fd()], highest);
    let mut byte = [1];
    let _ = rustix::io::write(socket, &byte);
    while let Err(rustix::io::Errno::INTR) | Ok(1..) = rustix::io::read(socket, &mut byte) {}
    cleanup::kill_all(roll, scratch);
    drop(over);
    unreachable!("the guard has ended");
}

/// Exits the reaper when dropped, also by a panic, which must not unwind into the frames of the fork.
struct ExitOnDrop;

impl Drop for ExitOnDrop {
    fn drop(&mut self) {
        // SAFETY: exits at once, without the exit handlers of the parent.
        unsafe { libc::_exit(0) }
    }
}

/// Blocks all signals for this thread, and for a process forked from it.
struct BlockedSignals {
    before: libc::sigset_t,
}

impl BlockedSignals {
    fn new() -> Self {
        let mut all = std::mem::MaybeUninit::uninit();
        let mut before = std::mem::MaybeUninit::uninit();
        // SAFETY: both sets are valid places to write to, and are initialized by the calls that write to them; with
        // these arguments neither call fails.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
            Self { before: before.assume_init() }
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was in force before; the call only reads it.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// Sets close-on-exec on all descriptors of this process but the standard ones.
///
/// Our own have it already. This is for descriptors that the process inherited, and those that other libraries opened
/// without it.
pub(super) fn seal_descriptors() {
    if close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC).is_ok() {
        return;
    }
    // Kernels before 5.11 have no `CLOSE_RANGE_CLOEXEC`.
    for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        if let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok())
            && fd > 2
        {
            // SAFETY: sets a flag of a descriptor that is used for nothing else here; if it was closed meanwhile, the
            // call fails, and if its number was reused, the new descriptor gets a flag that it has already or should
            // have.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Lets tokio watch when a descriptor becomes readable.
///
/// # Errors
/// The runtime cannot watch it.
pub(super) fn watch_descriptor(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor until it is dropped, and the `AsyncFd` owns it until then.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }.map_err(Into::into)
}

/// Closes all descriptors but two; only the reaper may do that.
fn close_others(mut kept: [RawFd; 2], highest: RawFd) {
    kept.sort_unstable();
    let [low, high] = kept;
    let gaps = [(0, low - 1), (low + 1, high - 1), (high + 1, RawFd::MAX)];
    for (first, last) in gaps.into_iter().filter(|(first, last)| first <= last) {
        if close_range(first.cast_unsigned(), last.cast_unsigned(), 0).is_err() {
            for fd in first..=last.min(highest) {
                // SAFETY: nothing in the reaper uses any descriptor but these two.
                unsafe { libc::close(fd) };
            }
        }
    }
}

fn close_range(first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: the system call takes three numbers. The callers decide whether the descriptors may be closed.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the highest possible descriptor of this process.
fn highest_descriptor() -> RawFd {
    const MAX_DESCRIPTORS: u64 = 65_536;
    let limit =
        rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(MAX_DESCRIPTORS);
    RawFd::try_from(limit.min(MAX_DESCRIPTORS)).unwrap_or(RawFd::MAX)
}
