//! The few statistics that a noisy machine needs.

/// The middle of a set of figures, and how far they spread.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Summarises the figures; none give none.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        // An even count has two middles; with an odd one they are the same.
        let lower = *sorted.get((sorted.len() - 1) / 2)?;
        Some(Self { median: (lower + upper) / 2.0, least: *sorted.first()?, most: *sorted.last()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(figures: &[f64], expected: Option<(f64, f64, f64)>) {
        let spread = Spread::of(figures.iter().copied());
        assert_eq!(spread.map(|spread| (spread.least, spread.median, spread.most)), expected);
    }

    #[test]
    fn spread_has_least_median_and_most() {
        check(&[], None);
        check(&[4.0], Some((4.0, 4.0, 4.0)));
        check(&[3.0, 1.0], Some((1.0, 2.0, 3.0)));
        check(&[9.0, 1.0, 2.0], Some((1.0, 2.0, 9.0)));
    }
}
