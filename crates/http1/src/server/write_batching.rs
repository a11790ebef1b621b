//! When a response is written: at once, or after all tasks that are ready had their turn.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Waits until the tasks that are ready by now had their turn, on a thread where there are three or more at a time.
///
/// A write is a system call that wakes the peer. A thread that reads all that has arrived before it writes all responses
/// spends less time on each. A call that is alone would only be delayed, and so would one beside slow calls; a sample
/// measures that now and then.
pub(super) async fn yield_before_write() {
    let Some(arrival) = HERE.with(WriteBatching::begin_write) else { return };
    let mut has_waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        // Behind all that is ready, and where another thread can take it that has nothing to do.
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
    HERE.with(|company| company.finish_write(&arrival, arrival.started_at.map(|at| at.elapsed())));
}

thread_local! {
    static HERE: WriteBatching = const { WriteBatching::new() };
}

/// Who was about to write on one thread.
#[derive(Debug)]
struct WriteBatching {
    /// How many there were so far.
    started: Cell<u32>,
    /// How many went on here who had waited, wherever they had arrived.
    finished: Cell<u32>,
    /// How many of the last ones overlapped with another write, less those that did not.
    concurrency: Cell<u8>,
}

/// A write that waits for its turn.
#[derive(Debug)]
struct PendingWrite {
    number: u32,
    /// Where it arrived, which need not be where it goes on.
    thread_key: usize,
    /// How many had gone on by then.
    finished_before: u32,
    /// When, if it finds out how long it takes.
    started_at: Option<Instant>,
}

/// From this concurrency on every write waits.
const BATCH_THRESHOLD: u8 = 4;

/// No more meetings than this are counted, or a thread that was busy once would be taken for busy for long.
const MAX_CONCURRENCY: u8 = 8;

/// One of so many writes waits as a sample where others do not. Samples are rare, since one may wake a thread for nothing;
/// and the number is prime, or the sample might always be the last of a batch, which overlaps with no other.
const SAMPLE_INTERVAL: u32 = 509;

/// One of so many finds out how long it takes.
const TIMING_INTERVAL: u32 = 8;

/// No write waits where each turn takes longer: the tasks that are ready do more than relay a message.
const MAX_TURN: Duration = Duration::from_micros(100);

/// No write waits longer than this, however many there are.
const MAX_WAIT: Duration = Duration::from_millis(5);

impl WriteBatching {
    const fn new() -> Self {
        Self { started: Cell::new(0), finished: Cell::new(0), concurrency: Cell::new(0) }
    }

    fn thread_key(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Counts a write that is about to begin; returns it if it should wait.
    fn begin_write(&self) -> Option<PendingWrite> {
        let number = self.started.get().wrapping_add(1);
        self.started.set(number);
        if !is_sample(number) && self.concurrency.get() < BATCH_THRESHOLD {
            return None;
        }
        let at = (is_sample(number) || number.is_multiple_of(TIMING_INTERVAL)).then(Instant::now);
        Some(PendingWrite {
            number,
            thread_key: self.thread_key(),
            finished_before: self.finished.get(),
            started_at: at,
        })
    }

    /// Records whether other writes began while this one waited, and how long it waited if that was measured.
    fn finish_write(&self, arrival: &PendingWrite, within: Option<Duration>) {
        let left = self.finished.replace(self.finished.get().wrapping_add(1));
        // Another thread resumed the task, and the writes that began there are not known here.
        if arrival.thread_key != self.thread_key() {
            return;
        }
        let came = self.started.get().wrapping_sub(arrival.number);
        let left = left.wrapping_sub(arrival.finished_before);
        // The first of a crowd waits for others to read, and the last for others to write.
        let turns = came.saturating_add(left).saturating_add(1);
        let was_long = within.is_some_and(|within| within > MAX_WAIT.min(MAX_TURN.saturating_mul(turns)));
        let was_alone = came == 0;
        self.concurrency.set(match self.concurrency.get() {
            _ if was_long => 0,
            met if was_alone => met.saturating_sub(1),
            // Meanwhile the concurrency fell below the threshold, and these still wait.
            met if met < BATCH_THRESHOLD && !is_sample(arrival.number) => met,
            met => MAX_CONCURRENCY.min(met + 1),
        });
    }
}

/// Reports whether a write is a sample, which always waits.
fn is_sample(number: u32) -> bool {
    number.is_multiple_of(SAMPLE_INTERVAL)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Has so many come at one time, again and again, and returns how many of the last ones waited.
    fn wait_of(company: &WriteBatching, at_once: usize) -> usize {
        let mut waited = 0;
        for _ in 0..3000 {
            let arrivals: Vec<_> = (0..at_once).filter_map(|_| company.begin_write()).collect();
            waited = arrivals.len();
            arrivals.iter().for_each(|arrival| company.finish_write(arrival, None));
        }
        waited
    }

    #[test]
    fn writes_are_batched_only_with_concurrent_connections() {
        let near_the_end = || Cell::new(u32::MAX - 100);
        let company =
            WriteBatching { started: near_the_end(), finished: near_the_end(), ..WriteBatching::new() };
        for at_once in [1, 8, 1, 2, 3, 1] {
            let expected = if at_once < 3 { 0 } else { at_once };
            // None of the last ones is the sample.
            assert_eq!(wait_of(&company, at_once), expected, "{at_once} at once");
        }
    }

    #[test]
    fn write_batching_does_not_wait_for_slow_requests() {
        const MANY: u32 = 16;
        // So many may take longer than one, and each of them may not.
        for (turn, waits) in [(MAX_TURN / 2, true), (2 * MAX_TURN, false), (MAX_WAIT, false)] {
            let company = WriteBatching::new();
            assert_eq!(wait_of(&company, 16), 16);
            for round in 0..1000 {
                let arrivals: Vec<_> = (0..MANY).filter_map(|_| company.begin_write()).collect();
                let waiting = arrivals.iter().filter(|arrival| !is_sample(arrival.number)).count();
                assert!(round == 0 || waits == (waiting > 0), "{turn:?}, round {round}");
                for arrival in arrivals {
                    company.finish_write(&arrival, arrival.started_at.map(|_| turn * (MANY - 1)));
                }
            }
            assert_eq!(wait_of(&company, 16), 16, "where it no longer takes long");
        }
    }

    #[test]
    fn write_batching_stops_when_the_wait_exceeds_its_bound() {
        let company = WriteBatching { concurrency: Cell::new(MAX_CONCURRENCY), ..WriteBatching::new() };
        let first = company.begin_write().unwrap();
        assert_eq!((0..1000).filter_map(|_| company.begin_write()).count(), 1000);
        company.finish_write(&first, Some(MAX_WAIT));
        assert_eq!(company.concurrency.get(), MAX_CONCURRENCY);
        company.finish_write(&first, Some(2 * MAX_WAIT));
        assert_eq!(company.concurrency.get(), 0);
    }

    #[test]
    fn writes_begun_on_another_thread_count_as_batch_turns() {
        let (here, there) = (
            WriteBatching { concurrency: Cell::new(MAX_CONCURRENCY), ..WriteBatching::new() },
            WriteBatching::new(),
        );
        there.concurrency.set(MAX_CONCURRENCY);
        let one = here.begin_write().unwrap();
        (0..MAX_CONCURRENCY).for_each(|_| here.finish_write(&there.begin_write().unwrap(), None));
        here.begin_write().unwrap();
        here.finish_write(&one, Some(MAX_TURN * u32::from(MAX_CONCURRENCY)));
        assert_eq!(here.concurrency.get(), MAX_CONCURRENCY);
    }

    #[test]
    fn writes_finished_on_another_thread_are_not_counted_as_concurrent() {
        let (here, there) = (WriteBatching::new(), WriteBatching::new());
        for _ in 0..100 * SAMPLE_INTERVAL {
            if let Some(arrival) = here.begin_write() {
                there.finish_write(&arrival, None);
            }
        }
        assert_eq!((here.concurrency.get(), there.concurrency.get()), (0, 0));
    }

    #[tokio::test]
    async fn ready_connections_are_read_before_any_response_is_written() {
        const MANY: usize = 8;
        let happened = Mutex::new(Vec::new());
        let mut were_in_order = 0;
        for _ in 0..2000 {
            happened.lock().unwrap().clear();
            let one = async |_| {
                happened.lock().unwrap().push("read");
                yield_before_write().await;
                happened.lock().unwrap().push("write");
            };
            futures_util::future::join_all((0..MANY).map(one)).await;
            were_in_order +=
                usize::from(*happened.lock().unwrap() == [["read"; MANY], ["write"; MANY]].concat());
        }
        // Where the machine is busy with something else, it may now and then seem to take long.
        assert!(were_in_order > 100, "{were_in_order} of 2000");
    }
}
