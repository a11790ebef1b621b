//! The key of an upstream's listing, and the choice of the listing that a caller sees.
//!
//! # Invariants
//!
//! - A client sees only the listing of its own era, and a change in one era invalidates only that:
//!   `clients_list_and_call_the_tools_of_their_own_era_in_any_order`,
//!   `list_change_in_one_era_notifies_only_clients_of_that_era`.

use trunkline_client::SupportedEras;
use trunkline_config::ConnectionSharing;
use trunkline_protocol::model::ClientCapabilities;
use trunkline_protocol::{Era, Revision};

use super::era::choose_era;
use super::input::InputSet;

/// An era and a set of capabilities. For a caller, its own era and declared capabilities; for a listing, the era in
/// which it was fetched and the capabilities declared to the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ListingKey {
    pub(crate) era: Era,
    pub(crate) input: InputSet,
}

impl ListingKey {
    /// Returns the key of a caller.
    pub(crate) fn of_caller(revision: Revision, capabilities: &ClientCapabilities) -> Self {
        Self { era: revision.era(), input: InputSet::from_capabilities(capabilities) }
    }

    /// Returns the key of the listing that a caller sees: in the era that is chosen for it, with the capabilities
    /// that exist in the upstream's revision of that era. Callers of both eras see the same listing of an upstream
    /// that supports only one.
    pub(super) fn at_upstream(
        self,
        share: ConnectionSharing,
        pinned: Option<Era>,
        supported: SupportedEras,
        revision: impl FnOnce(Era) -> Option<Revision>,
    ) -> Self {
        let era = choose_era(self.era, pinned, supported);
        let input = match revision(era) {
            _ if share == ConnectionSharing::All => InputSet::default(),
            Some(revision) => self.input.usable_in(revision),
            None => self.input,
        };
        Self { era, input }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_of_both_eras_see_one_listing_unless_the_upstream_has_both() {
        use Era::{Legacy, Modern};
        let caller = ClientCapabilities::default().with_form().with_url();
        let [old, new] =
            [Revision::V2025_06_18, Revision::NEWEST].map(|of| ListingKey::of_caller(of, &caller));
        let [form, both] = [caller.with_form(), caller.clone()].map(|of| InputSet::from_capabilities(&of));
        let form = form.usable_in(Revision::V2025_06_18);
        let revision = |era| Some(if era == Legacy { Revision::V2025_06_18 } else { Revision::NEWEST });
        let two = SupportedEras::default().with(Legacy, true).with(Modern, true);
        for (supported, pinned, for_old, for_new) in [
            (two, None, (Legacy, form), (Modern, both)),
            (SupportedEras::default(), None, (Legacy, form), (Modern, both)),
            (SupportedEras::only(Legacy), None, (Legacy, form), (Legacy, form)),
            (SupportedEras::only(Modern), None, (Modern, both), (Modern, both)),
            (two, Some(Legacy), (Legacy, form), (Legacy, form)),
        ] {
            for (caller, (era, input)) in [(old, for_old), (new, for_new)] {
                let key = caller.at_upstream(ConnectionSharing::Principal, pinned, supported, revision);
                assert_eq!(key, ListingKey { era, input }, "{caller:?} {supported:?} {pinned:?}");
                let shared = caller.at_upstream(ConnectionSharing::All, pinned, supported, revision);
                assert_eq!(shared, ListingKey { era, input: InputSet::default() });
                let unknown = caller.at_upstream(ConnectionSharing::Principal, pinned, supported, |_| None);
                assert_eq!(unknown, ListingKey { era, input: both });
            }
        }
    }
}
