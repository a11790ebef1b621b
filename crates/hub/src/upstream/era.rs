//! In which era a server is spoken to, for whom.
//!
//! # Invariants
//!
//! - An upstream that supports both eras is used in the era of the caller, unless the configuration pins one:
//!   `a_server_of_both_eras_is_spoken_to_in_that_of_the_caller`,
//!   `a_pin_of_the_configuration_counts_for_clients_of_both_eras`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use trunkline_client::SupportedEras;
use trunkline_protocol::{Era, Revision};

use super::status::KnownServer;

/// How long it counts that a server did not speak an era: it may be replaced by one that does.
const UNSUPPORTED_ERA_TTL: Duration = Duration::from_secs(24 * 3600);

/// Chooses the era in which a caller reaches a server: its own, so that it has what it would have without the hub, unless the
/// server is known not to speak it. An era that the configuration names counts for all callers.
pub(super) fn choose_era(caller: Era, pinned: Option<Era>, spoken: SupportedEras) -> Era {
    let may_speak = |era: &Era| spoken.supports(*era) != Some(false);
    let others = Era::ALL.into_iter().filter(|era| *era != caller);
    pinned.unwrap_or_else(|| [caller].into_iter().chain(others).find(may_speak).unwrap_or(caller))
}

/// What is known of a server in each era that it was spoken to in.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownEras {
    supported: SupportedEras,
    learned_at: Option<Instant>,
    servers: Vec<(Era, Arc<KnownServer>)>,
}

impl KnownEras {
    /// Takes over what a connection tells that was wanted in an era.
    pub(super) fn learn(&mut self, wanted: Era, known: &Arc<KnownServer>, now: Instant) {
        self.supported = self.supported(now).merge(known.eras);
        if known.era() != wanted {
            // However it came about, it would come about again.
            self.supported = self.supported.with(wanted, false);
        }
        self.learned_at = Some(now);
        self.servers.retain(|(era, _)| *era != known.era());
        self.servers.push((known.era(), known.clone()));
    }

    /// Restores what was known in the previous run.
    pub(super) fn restored(known: Vec<Arc<KnownServer>>, not_spoken: &[Era], now: Instant) -> Self {
        let known: Vec<_> = known.into_iter().map(|known| (known.era(), known)).collect();
        let unspoken = not_spoken.iter().map(|era| (*era, false));
        let spoken = known.iter().map(|(era, _)| (*era, true)).chain(unspoken);
        let spoken =
            spoken.fold(SupportedEras::default(), |eras, (era, is_spoken)| eras.with(era, is_spoken));
        Self { supported: spoken, learned_at: Some(now), servers: known }
    }

    /// Returns what is known of each era, the newest last.
    pub(super) fn known(&self) -> impl Iterator<Item = &Arc<KnownServer>> {
        self.servers.iter().map(|(_, known)| known)
    }

    /// Returns the eras that the server is known not to speak.
    pub(super) fn not_spoken(&self, now: Instant) -> impl Iterator<Item = Era> {
        let spoken = self.supported(now);
        Era::ALL.into_iter().filter(move |era| spoken.supports(*era) == Some(false))
    }

    /// Returns which eras the server speaks, as far as that is known and not too long ago.
    pub(super) fn supported(&self, now: Instant) -> SupportedEras {
        let is_recent = |learned: Instant| now.saturating_duration_since(learned) < UNSUPPORTED_ERA_TTL;
        if self.learned_at.is_some_and(is_recent) { self.supported } else { SupportedEras::default() }
    }

    /// Returns what is known of the server in an era.
    pub(super) fn known_in(&self, era: Era) -> Option<&Arc<KnownServer>> {
        self.servers.iter().find(|(known, _)| *known == era).map(|(_, known)| known)
    }

    /// Reports whether the server was never connected to.
    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Forgets which eras the server does not speak, so that they are tried again.
    pub(super) fn forget_unsupported(&mut self) {
        self.learned_at = None;
    }
}

/// The era that is tried first where no caller is there yet.
pub(super) fn default_era() -> Era {
    Revision::NEWEST.era()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_gets_its_own_era_unless_the_server_does_not_speak_it_or_one_is_pinned() {
        use Era::{Legacy, Modern};
        let unknown = SupportedEras::default();
        let both = unknown.with(Legacy, true).with(Modern, true);
        for (caller, pinned, spoken, expected) in [
            (Legacy, None, unknown, Legacy),
            (Modern, None, unknown, Modern),
            (Legacy, None, both, Legacy),
            (Modern, None, both, Modern),
            // One of which only the other era is known is tried in the caller's.
            (Legacy, None, unknown.with(Modern, true), Legacy),
            (Modern, None, unknown.with(Legacy, true), Modern),
            (Legacy, None, SupportedEras::only(Modern), Modern),
            (Modern, None, SupportedEras::only(Legacy), Legacy),
            (Legacy, None, SupportedEras::only(Legacy), Legacy),
            // What cannot be spoken to at all is tried as the caller speaks.
            (Legacy, None, unknown.with(Legacy, false).with(Modern, false), Legacy),
            (Legacy, Some(Modern), both, Modern),
            (Modern, Some(Legacy), unknown, Legacy),
            (Modern, Some(Legacy), SupportedEras::only(Modern), Legacy),
        ] {
            assert_eq!(choose_era(caller, pinned, spoken), expected, "{caller:?} {pinned:?} {spoken:?}");
        }
    }
}
