//! The guard: one process that outlives us by as much as it takes to end our children.
//!
//! It is a copy of this process that was forked when the first child was started, and that does nothing but wait for
//! the other end of a socket to close. We hold that end and never write to it, so it closes when we are gone, for
//! whatever reason. Then the guard reads in the [roll] which groups there are, and [ends them](sweep).
//!
//! The roll is a file in memory that both of us have: to enter a child costs one small write and does not wake the guard.
//!
//! This is the only file with `unsafe` in it. There is no safe way to make a process that is not another program, and a
//! library has no other program to start.
#![allow(unsafe_code, reason = "see above; each block says why it is sound")]

mod cleanup;
mod group_table;

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};

use parking_lot::Mutex;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};
use rustix::process::{Pid, WaitOptions};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::cleanup::ReaperScratch;
pub(super) use self::group_table::GroupSlot;

/// The guard of this process, once there is one.
static REAPER: Mutex<Option<ReaperProcess>> = Mutex::new(None);

struct ReaperProcess {
    id: Pid,
    /// Closes when we are gone, and ours reads as ended when the guard is.
    socket: OwnedFd,
    /// Who made it: a copy of us that was forked by others is not guarded by our guard.
    parent_pid: u32,
}

/// Makes sure that there is a guard that lives.
///
/// # Errors
/// It cannot be made.
fn ensure_running(roll: BorrowedFd<'_>) -> io::Result<()> {
    let mut guard = REAPER.lock();
    if guard.as_ref().is_some_and(ReaperProcess::is_alive) {
        return Ok(());
    }
    if let Some(dead) = guard.take() {
        // It was killed by somebody; its successor finds everything that it has to know in the roll.
        let _ = rustix::process::waitpid(Some(dead.id), WaitOptions::NOHANG);
    }
    *guard = Some(ReaperProcess::start(roll)?);
    Ok(())
}

impl ReaperProcess {
    fn start(roll: BorrowedFd<'_>) -> io::Result<Self> {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // The copy must not allocate, so what it needs is allocated here.
        let mut scratch = ReaperScratch::new();
        let highest = highest_descriptor();
        let signals = BlockedSignals::new();
        // SAFETY: the other threads do not exist in the copy, and what they held locked stays locked there. The copy
        // therefore only runs `watch`, which makes system calls on memory that exists already, takes no lock, allocates
        // nothing, never returns and never unwinds. No handler of ours runs in it, since all signals are blocked.
        let id = unsafe { libc::fork() };
        if id == 0 {
            run_reaper(theirs.as_fd(), roll, &mut scratch, highest);
        }
        drop(signals);
        let id = Pid::from_raw(id).filter(|_| id > 0).ok_or_else(io::Error::last_os_error)?;
        drop(theirs);
        // No child starts before the guard has left our group and let go of our descriptors.
        let ready = rustix::io::retry_on_intr(|| rustix::io::read(&ours, &mut [0]))?;
        if ready == 0 {
            return Err(io::Error::other("the guard ended at once"));
        }
        Ok(Self { id, socket: ours, parent_pid: std::process::id() })
    }

    fn is_alive(&self) -> bool {
        let mut byte = [0];
        // A socket whose other end is held has nothing to read; one whose other end is gone is at its end.
        let nothing = rustix::net::recv(&self.socket, &mut byte, RecvFlags::DONTWAIT | RecvFlags::PEEK);
        self.parent_pid == std::process::id() && nothing == Err(rustix::io::Errno::AGAIN)
    }
}

/// All that the guard does.
fn run_reaper(
    socket: BorrowedFd<'_>,
    roll: BorrowedFd<'_>,
    scratch: &mut ReaperScratch,
    highest: RawFd,
) -> ! {
    let over = ExitOnDrop;
    // A session of its own keeps it from the signals of our terminal and of our group.
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir(c"/");
    let _ = rustix::thread::set_name(c"trunkline-guard");
    close_others([socket.as_raw_fd(), roll.as_raw_fd()], highest);
    let mut byte = [1];
    let _ = rustix::io::write(socket, &byte);
    while let Err(rustix::io::Errno::INTR) | Ok(1..) = rustix::io::read(socket, &mut byte) {}
    cleanup::kill_all(roll, scratch);
    drop(over);
    unreachable!("the guard has ended");
}

/// Ends the guard when it is dropped, also by a panic, which must not unwind into frames that were copied.
struct ExitOnDrop;

impl Drop for ExitOnDrop {
    fn drop(&mut self) {
        // SAFETY: ends the process at once, without handlers that belong to the original.
        unsafe { libc::_exit(0) }
    }
}

/// Blocks all signals for this thread, and for a process that is forked meanwhile.
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

/// Keeps all descriptors of this process but the standard ones from programs that it starts.
///
/// Ours are kept from them anyway. This is for those that we were started with, and those that other libraries opened
/// without care.
pub(super) fn seal_descriptors() {
    if close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC).is_ok() {
        return;
    }
    // Kernels before 5.11 cannot do it in one go.
    for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        if let Some(fd) = entry.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok())
            && fd > 2
        {
            // SAFETY: sets a flag of a descriptor that is used for nothing else here; if it was closed meanwhile, the
            // call fails, and if it was opened anew, it gets a flag that it has already or should have.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Lets tokio watch when a descriptor becomes readable.
///
/// # Errors
/// The runtime cannot watch it.
pub(super) fn watch_descriptor(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is one and the same open descriptor until it is dropped, and the watch owns it until then.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }.map_err(Into::into)
}

/// Closes all descriptors but two; only the guard may do that.
fn close_others(mut kept: [RawFd; 2], highest: RawFd) {
    kept.sort_unstable();
    let [low, high] = kept;
    let gaps = [(0, low - 1), (low + 1, high - 1), (high + 1, RawFd::MAX)];
    for (first, last) in gaps.into_iter().filter(|(first, last)| first <= last) {
        if close_range(first.cast_unsigned(), last.cast_unsigned(), 0).is_err() {
            for fd in first..=last.min(highest) {
                // SAFETY: nothing in the guard uses any descriptor but the two that are kept.
                unsafe { libc::close(fd) };
            }
        }
    }
}

fn close_range(first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: the system call takes three numbers. Whether the descriptors may be closed is for the callers to say.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the highest number that a descriptor of ours can have.
fn highest_descriptor() -> RawFd {
    const MAX_DESCRIPTORS: u64 = 65_536;
    let limit =
        rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(MAX_DESCRIPTORS);
    RawFd::try_from(limit.min(MAX_DESCRIPTORS)).unwrap_or(RawFd::MAX)
}
