//! Chooses the protocol era in which a server is connected for a caller.
//!
//! # Invariants
//!
//! - An upstream that supports both eras is used in the era of the caller, unless the configuration pins one:
//!   `dual_era_server_is_connected_in_the_era_of_the_caller`,
//!   `pinned_era_applies_to_clients_of_both_eras`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use trunkline_client::SupportedEras;
use trunkline_protocol::{Era, Revision};

use super::status::KnownServer;

/// How long it is remembered that a server does not support an era: it may be upgraded.
const UNSUPPORTED_ERA_TTL: Duration = Duration::from_secs(24 * 3600);

/// Chooses the era in which a caller reaches a server: its own, so that it has the same features as without the hub,
/// unless the server is known not to support it. An era pinned by the configuration applies to all callers.
pub(super) fn choose_era(caller: Era, pinned: Option<Era>, supported: SupportedEras) -> Era {
    let may_support = |era: &Era| supported.supports(*era) != Some(false);
    let others = Era::ALL.into_iter().filter(|era| *era != caller);
    pinned.unwrap_or_else(|| [caller].into_iter().chain(others).find(may_support).unwrap_or(caller))
}

/// What is known of a server in each era in which it was connected.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownEras {
    supported: SupportedEras,
    learned_at: Option<Instant>,
    servers: Vec<(Era, Arc<KnownServer>)>,
}

impl KnownEras {
    /// Records what a connection that was requested in an era has learned.
    pub(super) fn learn(&mut self, wanted: Era, known: &Arc<KnownServer>, now: Instant) {
        self.supported = self.supported(now).merge(known.eras);
        if known.era() != wanted {
            // Whatever the cause of the fallback, a retry would fall back again.
            self.supported = self.supported.with(wanted, false);
        }
        self.learned_at = Some(now);
        self.servers.retain(|(era, _)| *era != known.era());
        self.servers.push((known.era(), known.clone()));
    }

    /// Restores what was known in the previous run, and was learned this long ago.
    pub(super) fn restored(
        known: Vec<Arc<KnownServer>>,
        not_spoken: &[Era],
        now: Instant,
        age: Duration,
    ) -> Self {
        let known: Vec<_> = known.into_iter().map(|known| (known.era(), known)).collect();
        let unsupported = not_spoken.iter().map(|era| (*era, false));
        let supported = known.iter().map(|(era, _)| (*era, true)).chain(unsupported);
        let supported = supported
            .fold(SupportedEras::default(), |eras, (era, is_supported)| eras.with(era, is_supported));
        Self { supported, learned_at: now.checked_sub(age), servers: known }
    }

    /// Returns what is known of each era, the newest last.
    pub(super) fn known(&self) -> impl Iterator<Item = &Arc<KnownServer>> {
        self.servers.iter().map(|(_, known)| known)
    }

    /// Returns the eras that the server is known not to support.
    pub(super) fn not_spoken(&self, now: Instant) -> impl Iterator<Item = Era> {
        let supported = self.supported(now);
        Era::ALL.into_iter().filter(move |era| supported.supports(*era) == Some(false))
    }

    /// Returns the eras that the server supports, as far as known and not expired.
    pub(super) fn supported(&self, now: Instant) -> SupportedEras {
        let is_recent = |learned: Instant| now.saturating_duration_since(learned) < UNSUPPORTED_ERA_TTL;
        if self.learned_at.is_some_and(is_recent) { self.supported } else { SupportedEras::default() }
    }

    /// Returns what is known of the server in an era.
    pub(super) fn known_in(&self, era: Era) -> Option<&Arc<KnownServer>> {
        self.servers.iter().find(|(known, _)| *known == era).map(|(_, known)| known)
    }

    /// Reports whether the server was never connected.
    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Forgets the unsupported eras, so that they are tried again.
    pub(super) fn forget_unsupported(&mut self) {
        self.learned_at = None;
    }
}

/// Returns the era that is tried first without a caller.
pub(super) fn default_era() -> Era {
    Revision::NEWEST.era()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caller_gets_its_own_era_unless_unsupported_or_pinned() {
        use Era::{Legacy, Modern};
        let unknown = SupportedEras::default();
        let both = unknown.with(Legacy, true).with(Modern, true);
        for (caller, pinned, supported, expected) in [
            (Legacy, None, unknown, Legacy),
            (Modern, None, unknown, Modern),
            (Legacy, None, both, Legacy),
            (Modern, None, both, Modern),
            // If only the other era is known to be supported, the caller's era is tried.
            (Legacy, None, unknown.with(Modern, true), Legacy),
            (Modern, None, unknown.with(Legacy, true), Modern),
            (Legacy, None, SupportedEras::only(Modern), Modern),
            (Modern, None, SupportedEras::only(Legacy), Legacy),
            (Legacy, None, SupportedEras::only(Legacy), Legacy),
            // If no era is supported, the caller's era is tried.
            (Legacy, None, unknown.with(Legacy, false).with(Modern, false), Legacy),
            (Legacy, Some(Modern), both, Modern),
            (Modern, Some(Legacy), unknown, Legacy),
            (Modern, Some(Legacy), SupportedEras::only(Modern), Legacy),
        ] {
            assert_eq!(
                choose_era(caller, pinned, supported),
                expected,
                "{caller:?} {pinned:?} {supported:?}"
            );
        }
    }
}
