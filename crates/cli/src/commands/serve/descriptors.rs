//! How many connections may be open at once, as far as the system is concerned.

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use trunkline_server::ServerLimits;

/// More than the default limits on connections ever need, and few enough for programs that go through all there might be.
#[cfg(unix)]
const WANTED_LIMIT: u64 = 65_536;

/// The limit that every system grants; macOS reports no limit, and grants no more than its own.
#[cfg(unix)]
const FALLBACK_LIMIT: u64 = 10_240;

/// Takes as many descriptors as the system lets us have.
///
/// A shell gives a program 1,024, or 256, although it may have many more by asking: few of our own limits would ever be
/// reached, and a call through a hub takes two. The programs that we start have as many.
#[cfg(unix)]
pub(super) fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = |most: u64| maximum.map_or(most, |maximum| maximum.min(most));
    for wanted in [wanted(WANTED_LIMIT), wanted(FALLBACK_LIMIT)] {
        if current.is_none_or(|current| current >= wanted) {
            return;
        }
        match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
            Ok(()) => return,
            Err(error) => {
                tracing::debug!(%error, ?current, wanted, "cannot raise the limit on open files");
            }
        }
    }
}

/// Other platforms have no such limit.
#[cfg(not(unix))]
pub(super) fn raise() {}

/// Limits connections to half of the descriptors that the process can have, and reserved ones to an eighth, so that the
/// other half is left for servers, files and the admin address.
#[cfg(unix)]
pub(super) fn limit_connections(limits: &mut ServerLimits) {
    let most = getrlimit(Resource::Nofile).maximum.map_or(WANTED_LIMIT, |most| most.min(WANTED_LIMIT));
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    limits.connections = limits.connections.min(most / 2).max(1);
    limits.reserved_connections = limits.reserved_connections.min(most / 8).max(1);
}

/// Other platforms have no such limit.
#[cfg(not(unix))]
pub(super) fn limit_connections(_: &mut ServerLimits) {}
