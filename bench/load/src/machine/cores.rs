//! Server and generator each keep to a core of their own, so that neither steals time from the other.

use std::io;

use anyhow::{Context as _, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const SERVER_CORE: usize = 0;
const GENERATOR_CORE: usize = 1;

/// Moves this process to the generator's core.
pub(crate) fn pin_generator() -> Result<()> {
    let allowed = sched_getaffinity(None).context("read the set of allowed cores")?;
    ensure!(
        allowed.is_set(SERVER_CORE) && allowed.is_set(GENERATOR_CORE),
        "cores {SERVER_CORE} (server) and {GENERATOR_CORE} (generator) must both be allowed"
    );
    move_to(GENERATOR_CORE).context("pin the generator")
}

/// Runs `spawn` on the server's core; a child inherits the core of the thread that starts it.
///
/// Pinning the parent costs the child nothing, which `taskset` in front of it would: it would count as start-up time.
pub(crate) fn on_server_core<T>(spawn: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    move_to(SERVER_CORE)?;
    let outcome = spawn();
    move_to(GENERATOR_CORE)?;
    outcome
}

fn move_to(core: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(core);
    Ok(sched_setaffinity(None, &only)?)
}
