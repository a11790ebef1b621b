//! Thousands of standing streams need thousands of descriptors, here and in the server.

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open files, which children inherit, to at least `count`.
pub(crate) fn ensure_descriptors(count: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= count) {
        return Ok(());
    }
    ensure!(
        limit.maximum.is_none_or(|maximum| maximum >= count),
        "{count} open files are needed; the hard limit is {:?} (`ulimit -Hn`)",
        limit.maximum
    );
    setrlimit(Resource::Nofile, Rlimit { current: Some(count), maximum: limit.maximum })
        .context("raise the limit on open files")
}
