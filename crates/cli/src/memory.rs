//! Returns freed memory to the system while a server runs.
//!
//! glibc's allocator keeps what large messages needed in its arenas for as long as the process lives: hundreds of megabytes
//! after a few hundred clients that did not read. It also maps and unmaps blocks over and over that a busy server needs again at
//! once: 1,400 page faults, and most of the CPU, of a call that echoes 2 MB. So blocks of usual messages stay in the arenas
//! here, and the free pages of the arenas are returned every few seconds.
//!
//! That takes two functions of glibc without a safe wrapper; with another C library there is nothing to do here. Beside
//! `crates/process/src/reaper.rs` this is the only file with `unsafe` in it.
#![allow(unsafe_code, reason = "see above; each block says why it is sound")]

use std::convert::Infallible;
use std::num::NonZero;
use std::time::{Duration, Instant};

/// Blocks of this size and more get a mapping of their own, which is unmapped when they are freed.
///
/// Twice the default limit of a message, since a buffer that grows doubles.
const MMAP_THRESHOLD: usize = 8 << 20;

/// How much may stay free at the ends of all arenas together: `malloc_trim` returns that of the first arena alone.
const FREE_AT_ENDS: usize = 32 << 20;

/// How much may stay free at the end of one arena however many there are, so that messages of 64 KiB fault in no pages.
const LEAST_FREE_AT_END: usize = 2 << 20;

/// How long to wait between two trims.
const TRIM_INTERVAL: Duration = Duration::from_secs(5);

/// How many times longer than a trim the pause after it is: threads that allocate wait for an arena that is being trimmed.
const PAUSE_PER_TRIM: u32 = 100;

/// A process with less resident memory than this is not trimmed.
const TRIM_ABOVE: u64 = 32 << 20;

/// Sets which freed blocks glibc's allocator keeps. To be called before the threads of the runtime are started.
pub(crate) fn configure_allocator() {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    // Threads have an arena each.
    let trim_threshold = (FREE_AT_ENDS / threads).max(LEAST_FREE_AT_END);
    for (parameter, bytes) in
        [(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD), (libc::M_TRIM_THRESHOLD, trim_threshold)]
    {
        let Ok(bytes) = libc::c_int::try_from(bytes) else { continue };
        // SAFETY: `mallopt` takes two numbers, locks what it changes, and leaves blocks that are allocated as they are.
        unsafe { libc::mallopt(parameter, bytes) };
    }
}

/// Returns the free pages of all arenas to the system every few seconds.
pub(crate) async fn trim_periodically() -> Infallible {
    let mut pause = TRIM_INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        pause = TRIM_INTERVAL;
        if resident_bytes().is_none_or(|bytes| bytes > TRIM_ABOVE) {
            // On a thread of its own, so that connections are served meanwhile.
            let trimmed = tokio::task::spawn_blocking(trim).await;
            pause = pause.max(trimmed.unwrap_or_default() * PAUSE_PER_TRIM);
        }
    }
}

/// Returns the free pages of all arenas to the system, and how long that took.
fn trim() -> Duration {
    let started = Instant::now();
    // SAFETY: `malloc_trim` takes a number, may be called from any thread, and touches only pages without a block in use.
    unsafe { libc::malloc_trim(0) };
    started.elapsed()
}

/// Returns how much memory of this process is resident, if the system says so.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
