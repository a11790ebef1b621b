use trunkline_protocol::Era;

/// Which eras a server speaks, as far as that is known.
///
/// A server that speaks both need not say so: many list only the revisions of the modern era when they describe themselves, and
/// answer `initialize` nevertheless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpokenEras {
    legacy: Option<bool>,
    modern: Option<bool>,
}

impl SpokenEras {
    /// One era and no other.
    pub fn only(era: Era) -> Self {
        Era::ALL.into_iter().fold(Self::default(), |eras, each| eras.with(each, each == era))
    }

    /// Adds whether an era is spoken.
    #[must_use]
    pub fn with(mut self, era: Era, is_spoken: bool) -> Self {
        *self.of(era) = Some(is_spoken);
        self
    }

    /// Adds what is known otherwise, which counts where both say something.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { legacy: other.legacy.or(self.legacy), modern: other.modern.or(self.modern) }
    }

    /// Reports whether an era is spoken, if that is known.
    pub fn speaks(self, era: Era) -> Option<bool> {
        match era {
            Era::Legacy => self.legacy,
            Era::Modern => self.modern,
        }
    }

    fn of(&mut self, era: Era) -> &mut Option<bool> {
        match era {
            Era::Legacy => &mut self.legacy,
            Era::Modern => &mut self.modern,
        }
    }
}

/// What was wanted when a server was connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// This era, and no other was tried.
    Pinned,
    /// This era first, and then the other.
    Preferred(Era),
}

/// Says what a connection tells about the eras of a server: the era that came of it, and whether the server listed revisions of
/// the other when it described itself.
pub(crate) fn learned(wanted: Wanted, spoken: Era, lists_other: bool) -> SpokenEras {
    let eras = SpokenEras::default().with(spoken, true);
    let other = Era::ALL.into_iter().find(|era| *era != spoken);
    match (wanted, other) {
        (Wanted::Pinned, _) => SpokenEras::only(spoken),
        // It was tried first, in vain.
        (Wanted::Preferred(first), Some(other)) if first == other => eras.with(other, false),
        (Wanted::Preferred(_), Some(other)) if lists_other => eras.with(other, true),
        (Wanted::Preferred(_), _) => eras,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_tells_which_eras_a_server_speaks() {
        use Era::{Legacy, Modern};
        let (yes, no, unknown) = (Some(true), Some(false), None);
        for (wanted, spoken, lists_other, legacy, modern) in [
            (Wanted::Pinned, Legacy, false, yes, no),
            (Wanted::Pinned, Modern, true, no, yes),
            (Wanted::Preferred(Modern), Modern, false, unknown, yes),
            (Wanted::Preferred(Modern), Modern, true, yes, yes),
            (Wanted::Preferred(Modern), Legacy, false, yes, no),
            (Wanted::Preferred(Legacy), Legacy, false, yes, unknown),
            (Wanted::Preferred(Legacy), Modern, false, no, yes),
            // That it lists what it did not answer counts for nothing.
            (Wanted::Preferred(Legacy), Modern, true, no, yes),
        ] {
            let eras = learned(wanted, spoken, lists_other);
            assert_eq!((eras.speaks(Legacy), eras.speaks(Modern)), (legacy, modern), "{wanted:?} {spoken:?}");
        }
        let both = SpokenEras::only(Legacy).and(SpokenEras::default().with(Modern, true));
        assert_eq!((both.speaks(Legacy), both.speaks(Modern)), (yes, yes));
    }
}
