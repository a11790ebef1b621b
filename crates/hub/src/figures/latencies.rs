use std::sync::atomic::{AtomicU32, Ordering};

/// The counters of one factor of two, so that a time is known to a sixteenth.
const PER_OCTAVE: u64 = 8;

/// The exponent of the first counter, which has all shorter times: 8 µs.
const FIRST_OCTAVE: u32 = 3;

/// The octaves, up to nine hours.
const OCTAVES: u64 = 32;

/// The counters of a histogram.
const COUNTERS: usize = (PER_OCTAVE * OCTAVES) as usize;

/// Counts times by their length, without a lock.
#[derive(Debug)]
pub(super) struct LatencyCounters([AtomicU32; COUNTERS]);

impl Default for LatencyCounters {
    fn default() -> Self {
        Self([const { AtomicU32::new(0) }; COUNTERS])
    }
}

impl LatencyCounters {
    /// Counts a time.
    pub(super) fn add(&self, micros: u64) {
        if let Some(counter) = self.0.get(index_of(micros)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the counts, and begins with none.
    pub(super) fn take(&self) -> LatencyCounts {
        let counts = self.0.iter().enumerate().filter_map(|(at, counter)| {
            // Most counters are not in use, and are only read.
            let count = match counter.load(Ordering::Relaxed) {
                0 => 0,
                _ => counter.swap(0, Ordering::Relaxed),
            };
            (count > 0).then(|| (u8::try_from(at).unwrap_or(u8::MAX), count))
        });
        LatencyCounts(counts.collect())
    }
}

/// The counts that are not zero, each with the position of its counter, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LatencyCounts(Vec<(u8, u32)>);

impl LatencyCounts {
    /// Adds other counts.
    pub(super) fn add(&mut self, other: &Self) {
        for &(at, count) in &other.0 {
            match self.0.binary_search_by_key(&at, |(known, _)| *known) {
                Ok(found) => {
                    if let Some((_, sum)) = self.0.get_mut(found) {
                        *sum = sum.saturating_add(count);
                    }
                }
                Err(place) => self.0.insert(place, (at, count)),
            }
        }
    }

    /// Returns how many times were counted.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(|(_, count)| u64::from(*count)).sum()
    }

    /// Returns the time that so many of a hundred times do not exceed, in microseconds, to a sixteenth; zero without any.
    pub(super) fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.total() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for &(at, count) in &self.0 {
            seen += u64::from(count);
            if seen >= rank {
                return middle_of(u64::from(at));
            }
        }
        0
    }
}

/// Returns the counter of a time: by its highest bit, and the three bits after it.
fn index_of(micros: u64) -> usize {
    let micros = micros.max(1 << FIRST_OCTAVE);
    let octave = micros.ilog2() - FIRST_OCTAVE;
    let within = (micros >> octave) & (PER_OCTAVE - 1);
    let index = u64::from(octave) * PER_OCTAVE + within;
    usize::try_from(index).unwrap_or(COUNTERS).min(COUNTERS - 1)
}

/// Returns the middle of the times of a counter.
fn middle_of(index: u64) -> u64 {
    let (octave, within) = (index / PER_OCTAVE, index % PER_OCTAVE);
    let width = 1u64 << octave;
    ((PER_OCTAVE + within) << octave) + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_known_to_a_sixteenth() {
        for micros in [9, 12, 100, 999, 1_000, 15_000, 250_000, 1_000_000, 59_999_999, 3_600_000_000] {
            let counters = LatencyCounters::default();
            counters.add(micros);
            let shown = counters.take().percentile(50);
            assert!(shown.abs_diff(micros) * 16 <= micros, "{micros} is shown as {shown}");
        }
        for (micros, index) in [(0, 0), (8, 0), (9, 1), (16, 8), (u64::MAX, COUNTERS - 1)] {
            assert_eq!(index_of(micros), index, "{micros}");
        }
    }

    #[test]
    fn percentiles_are_those_of_all_counts_together() {
        let counters = LatencyCounters::default();
        for _ in 0..90 {
            counters.add(1_000);
        }
        let mut counts = counters.take();
        assert_eq!(counters.take(), LatencyCounts::default());
        for _ in 0..9 {
            counters.add(100_000);
        }
        counters.add(5_000_000);
        counts.add(&counters.take());
        assert_eq!(counts.total(), 100);
        let near = |percent, micros: u64| counts.percentile(percent).abs_diff(micros) * 16 <= micros;
        assert!(near(50, 1_000) && near(90, 1_000), "{counts:?}");
        assert!(near(91, 100_000) && near(99, 100_000), "{counts:?}");
        assert!(near(100, 5_000_000), "{counts:?}");
        assert_eq!(LatencyCounts::default().percentile(99), 0);
    }
}
