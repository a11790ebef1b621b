use trunkline_protocol::Era;

/// The eras that a server supports, as far as that is known.
///
/// A server that supports both need not declare it: many list only modern revisions in `server/discover`, and
/// accept `initialize` nevertheless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SupportedEras {
    legacy: Option<bool>,
    modern: Option<bool>,
}

impl SupportedEras {
    /// Creates a set with one era and not the other.
    pub fn only(era: Era) -> Self {
        Era::ALL.into_iter().fold(Self::default(), |eras, each| eras.with(each, each == era))
    }

    /// Sets whether an era is supported.
    #[must_use]
    pub fn with(mut self, era: Era, is_spoken: bool) -> Self {
        *self.slot_mut(era) = Some(is_spoken);
        self
    }

    /// Merges two sets; `other` wins where both know an era.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self { legacy: other.legacy.or(self.legacy), modern: other.modern.or(self.modern) }
    }

    /// Reports whether an era is supported, if that is known.
    pub fn supports(self, era: Era) -> Option<bool> {
        match era {
            Era::Legacy => self.legacy,
            Era::Modern => self.modern,
        }
    }

    fn slot_mut(&mut self, era: Era) -> &mut Option<bool> {
        match era {
            Era::Legacy => &mut self.legacy,
            Era::Modern => &mut self.modern,
        }
    }
}

/// The era that the client preferred when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EraPreference {
    /// The era was pinned, and no other was tried.
    Pinned,
    /// This era was tried first, then the other.
    Preferred(Era),
}

/// Infers the eras of a server from a connection: from the negotiated era, and from whether the server listed
/// revisions of the other.
pub(crate) fn infer_supported_eras(wanted: EraPreference, spoken: Era, lists_other: bool) -> SupportedEras {
    let eras = SupportedEras::default().with(spoken, true);
    let other = Era::ALL.into_iter().find(|era| *era != spoken);
    match (wanted, other) {
        (EraPreference::Pinned, _) => SupportedEras::only(spoken),
        // It was tried first, and failed.
        (EraPreference::Preferred(first), Some(other)) if first == other => eras.with(other, false),
        (EraPreference::Preferred(_), Some(other)) if lists_other => eras.with(other, true),
        (EraPreference::Preferred(_), _) => eras,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_infers_the_supported_eras() {
        use Era::{Legacy, Modern};
        let (yes, no, unknown) = (Some(true), Some(false), None);
        for (wanted, spoken, lists_other, legacy, modern) in [
            (EraPreference::Pinned, Legacy, false, yes, no),
            (EraPreference::Pinned, Modern, true, no, yes),
            (EraPreference::Preferred(Modern), Modern, false, unknown, yes),
            (EraPreference::Preferred(Modern), Modern, true, yes, yes),
            (EraPreference::Preferred(Modern), Legacy, false, yes, no),
            (EraPreference::Preferred(Legacy), Legacy, false, yes, unknown),
            (EraPreference::Preferred(Legacy), Modern, false, no, yes),
            // Listing an era that it did not respond to is no evidence.
            (EraPreference::Preferred(Legacy), Modern, true, no, yes),
        ] {
            let eras = infer_supported_eras(wanted, spoken, lists_other);
            assert_eq!(
                (eras.supports(Legacy), eras.supports(Modern)),
                (legacy, modern),
                "{wanted:?} {spoken:?}"
            );
        }
        let both = SupportedEras::only(Legacy).merge(SupportedEras::default().with(Modern, true));
        assert_eq!((both.supports(Legacy), both.supports(Modern)), (yes, yes));
    }
}
