use crate::revision::{Era, Revision};

/// A set of supported revisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevisionSet(u8);

impl RevisionSet {
    /// Every revision.
    pub const ALL: Self = Self((1 << Revision::ALL.len()) - 1);

    /// Adds a revision.
    #[must_use]
    pub const fn with(self, revision: Revision) -> Self {
        Self(self.0 | 1 << revision as u8)
    }

    /// Creates the set of these revisions.
    pub fn from_revisions(revisions: impl IntoIterator<Item = Revision>) -> Self {
        revisions.into_iter().fold(Self(0), Self::with)
    }

    /// Reports whether a revision is supported.
    pub const fn contains(self, revision: Revision) -> bool {
        self.0 & 1 << revision as u8 != 0
    }

    /// Returns the revisions, newest first.
    pub fn newest_first(self) -> impl Iterator<Item = Revision> {
        Revision::ALL.into_iter().rev().filter(move |revision| self.contains(*revision))
    }

    /// Returns the newest revision of an era, if one of it is supported.
    pub fn newest_of(self, era: Era) -> Option<Revision> {
        self.newest_first().find(|revision| revision.era() == era)
    }

    /// Chooses the revision with which `initialize` is answered, as [`Revision::negotiate`] does if all are
    /// supported.
    pub fn negotiate(self, requested: &str) -> Option<Revision> {
        let negotiated = Revision::negotiate(requested);
        if self.contains(negotiated) { Some(negotiated) } else { self.newest_of(Era::Legacy) }
    }
}

impl Default for RevisionSet {
    fn default() -> Self {
        Self::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiation_selects_a_supported_revision() {
        use Revision::{V2024_11_05 as R1, V2025_06_18 as R3, V2025_11_25 as R4, V2026_07_28 as R5};
        for (supported, requested, answer) in [
            (RevisionSet::ALL, R1, Some(R1)),
            (RevisionSet::ALL, R5, Some(R4)),
            (RevisionSet::from_revisions([R4]), R1, Some(R4)),
            (RevisionSet::from_revisions([R1, R3, R5]), R4, Some(R3)),
            (RevisionSet::from_revisions([R1, R3]), R1, Some(R1)),
            (RevisionSet::from_revisions([R5]), R4, None),
        ] {
            assert_eq!(supported.negotiate(requested.as_str()), answer, "{supported:?} {requested}");
        }
    }

    #[test]
    fn revision_set_iterates_newest_first() {
        assert!(RevisionSet::ALL.newest_first().eq(Revision::ALL.into_iter().rev()));
        let some = RevisionSet::from_revisions([Revision::V2024_11_05, Revision::V2026_07_28]);
        assert!(some.newest_first().eq([Revision::V2026_07_28, Revision::V2024_11_05]));
        assert_eq!(some.newest_of(Era::Legacy), Some(Revision::V2024_11_05));
    }
}
