use std::collections::VecDeque;

/// The seconds over which calls are counted and drawn.
pub(super) const WINDOW_SECONDS: i64 = 300;

/// The seconds over which the rate of calls is the average.
const RATE_SECONDS: i64 = 10;

/// The most durations that are kept for the percentiles.
const MAX_SAMPLES: usize = 4096;

const MICROS: i64 = 1_000_000;

/// The calls of the last minutes: how many in each second, and how long they took.
#[derive(Clone, Debug, Default)]
pub(super) struct CallStatistics {
    seconds: VecDeque<CountedSecond>,
    samples: VecDeque<(i64, u64)>,
}

/// The calls that ended within a second.
#[derive(Clone, Copy, Debug)]
struct CountedSecond {
    second: i64,
    calls: u64,
    errors: u64,
}

/// The durations that half, 95 % and 99 % of the calls did not exceed, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Percentiles {
    pub(super) p50: u64,
    pub(super) p95: u64,
    pub(super) p99: u64,
}

impl CallStatistics {
    /// Counts a call that ended at a time in microseconds.
    pub(super) fn record(&mut self, at: i64, micros: u64, is_error: bool) {
        let second = at.div_euclid(MICROS);
        // Events come in their order; a clock that was set back counts as standing still.
        let second = self.seconds.back().map_or(second, |last| last.second.max(second));
        match self.seconds.back_mut().filter(|last| last.second == second) {
            Some(last) => {
                last.calls += 1;
                last.errors += u64::from(is_error);
            }
            None => self.seconds.push_back(CountedSecond { second, calls: 1, errors: u64::from(is_error) }),
        }
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back((second, micros));
        self.forget_before(second - WINDOW_SECONDS);
    }

    fn forget_before(&mut self, oldest: i64) {
        while self.seconds.front().is_some_and(|first| first.second <= oldest) {
            self.seconds.pop_front();
        }
        while self.samples.front().is_some_and(|(second, _)| *second <= oldest) {
            self.samples.pop_front();
        }
    }

    /// Returns the calls per second over the last seconds.
    pub(super) fn rate(&self, now: i64) -> f64 {
        let calls: u64 = self.since(now, RATE_SECONDS).map(|counted| counted.calls).sum();
        // Below 2^52.
        #[expect(clippy::cast_precision_loss, reason = "there are not that many calls")]
        let rate = calls as f64 / RATE_SECONDS as f64;
        rate
    }

    /// Returns the calls and errors of the window.
    pub(super) fn totals(&self, now: i64) -> (u64, u64) {
        self.since(now, WINDOW_SECONDS)
            .fold((0, 0), |(calls, errors), counted| (calls + counted.calls, errors + counted.errors))
    }

    fn since(&self, now: i64, seconds: i64) -> impl Iterator<Item = &CountedSecond> {
        let oldest = now.div_euclid(MICROS) - seconds;
        self.seconds.iter().filter(move |counted| counted.second > oldest)
    }

    /// Returns the percentiles of the window, if a call ended in it.
    pub(super) fn percentiles(&self, now: i64) -> Option<Percentiles> {
        let oldest = now.div_euclid(MICROS) - WINDOW_SECONDS;
        let recent = self.samples.iter().filter(|(second, _)| *second > oldest);
        let mut micros: Vec<u64> = recent.map(|(_, micros)| *micros).collect();
        micros.sort_unstable();
        let at =
            |percent: usize| micros.get((micros.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Some(Percentiles { p50: at(50)?, p95: at(95)?, p99: at(99)? })
    }

    /// Returns how many calls ended in each of so many equal parts of the window, the oldest first.
    pub(super) fn series(&self, now: i64, parts: usize) -> Vec<u64> {
        let mut series = vec![0; parts];
        let oldest = now.div_euclid(MICROS) - WINDOW_SECONDS;
        for counted in self.since(now, WINDOW_SECONDS) {
            let place = usize::try_from(counted.second - oldest - 1).unwrap_or(0) * parts;
            let place = place / usize::try_from(WINDOW_SECONDS).unwrap_or(1);
            if let Some(part) = series.get_mut(place.min(parts.saturating_sub(1))) {
                *part += counted.calls;
            }
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000 * MICROS;

    #[test]
    fn statistics_cover_the_window_only() {
        let mut calls = CallStatistics::default();
        for (second, micros, is_error) in
            [(600, 9, true), (800, 100, false), (995, 200, true), (1000, 300, false)]
        {
            calls.record(second * MICROS, micros, is_error);
        }
        assert_eq!(calls.totals(NOW), (3, 1));
        assert!((calls.rate(NOW) - 0.2).abs() < 1e-9, "{}", calls.rate(NOW));
        assert_eq!(calls.percentiles(NOW), Some(Percentiles { p50: 200, p95: 300, p99: 300 }));
        assert_eq!(calls.series(NOW, 3), [1, 0, 2]);
        let later = NOW + 301 * MICROS;
        assert_eq!((calls.totals(later), calls.percentiles(later)), ((0, 0), None));
        assert_eq!(calls.series(later, 3), [0, 0, 0]);
        assert_eq!(calls.series(NOW, 0), [] as [u64; 0]);
    }

    #[test]
    fn statistics_stay_bounded_at_any_rate() {
        let mut calls = CallStatistics::default();
        for number in 0..1_000_000_i64 {
            calls.record(number * 1000, 5, false);
        }
        // A clock that is set back.
        calls.record(0, 5, false);
        assert!(calls.seconds.len() <= 301 && calls.samples.len() <= MAX_SAMPLES);
        let mut hundred = CallStatistics::default();
        (1..=100).for_each(|micros| hundred.record(NOW, micros, false));
        assert_eq!(hundred.percentiles(NOW), Some(Percentiles { p50: 50, p95: 95, p99: 99 }));
    }
}
