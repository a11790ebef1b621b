//! When an answer is written: at once, or after all others who are ready.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

/// Waits until the tasks that are ready by now had their turn, on a thread where there are three or more at a time.
///
/// To write is to wake somebody, and to leave one's own code for that of the system. A thread that reads all that has come
/// before it writes all that is to be said spends less time on each. A call that is alone would only be held up, and so would
/// one whose company takes its time; now and then one of them finds out.
pub(super) async fn after_others() {
    let Some(arrival) = HERE.with(Company::arrive) else { return };
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
    HERE.with(|company| company.leave(&arrival, arrival.at.map(|at| at.elapsed())));
}

thread_local! {
    static HERE: Company = const { Company::new() };
}

/// Who was about to write on one thread.
#[derive(Debug)]
struct Company {
    /// How many there were so far.
    arrived: Cell<u32>,
    /// How many went on here who had waited, wherever they had arrived.
    left: Cell<u32>,
    /// How many of them met somebody, of late, less those who met nobody.
    met: Cell<u8>,
}

/// Somebody who waits.
#[derive(Debug)]
struct Arrival {
    number: u32,
    /// Where it arrived, which need not be where it goes on.
    place: usize,
    /// How many had gone on by then.
    left: u32,
    /// When, if it finds out how long it takes.
    at: Option<Instant>,
}

/// From here on everybody waits.
const ENOUGH: u8 = 4;

/// No more meetings than this are counted, or a thread that was busy once would be taken for busy for long.
const MOST: u8 = 8;

/// One of so many waits where nobody else does. Few do, since it may wake a thread for nothing; and the number is prime, or it
/// might always be the last of a crowd, which meets nobody.
const SAMPLE: u32 = 509;

/// One of so many finds out how long it takes.
const TIMED: u32 = 8;

/// Nobody waits where each turn takes longer: those who are ready have more to do than to pass something on.
const LONGEST_TURN: Duration = Duration::from_micros(100);

/// Nobody waits where it takes longer, however many there are.
const LONGEST: Duration = Duration::from_millis(5);

impl Company {
    const fn new() -> Self {
        Self { arrived: Cell::new(0), left: Cell::new(0), met: Cell::new(0) }
    }

    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Takes note of somebody who is about to write, and tells whether it should wait.
    fn arrive(&self) -> Option<Arrival> {
        let number = self.arrived.get().wrapping_add(1);
        self.arrived.set(number);
        if !is_sample(number) && self.met.get() < ENOUGH {
            return None;
        }
        let at = (is_sample(number) || number.is_multiple_of(TIMED)).then(Instant::now);
        Some(Arrival { number, place: self.place(), left: self.left.get(), at })
    }

    /// Takes note of whether anybody came while this one waited, and of how long that took if it found out.
    fn leave(&self, arrival: &Arrival, within: Option<Duration>) {
        let left = self.left.replace(self.left.get().wrapping_add(1));
        // Another thread has taken it, and nobody knows who came there meanwhile.
        if arrival.place != self.place() {
            return;
        }
        let came = self.arrived.get().wrapping_sub(arrival.number);
        let left = left.wrapping_sub(arrival.left);
        // The first of a crowd waits for others to read, and the last for others to write.
        let turns = came.saturating_add(left).saturating_add(1);
        let was_long = within.is_some_and(|within| within > LONGEST.min(LONGEST_TURN.saturating_mul(turns)));
        let was_alone = came == 0;
        self.met.set(match self.met.get() {
            _ if was_long => 0,
            met if was_alone => met.saturating_sub(1),
            // Meanwhile it was found that nobody should wait, and these still do.
            met if met < ENOUGH && !is_sample(arrival.number) => met,
            met => MOST.min(met + 1),
        });
    }
}

/// Tells whether it waits in any case.
fn is_sample(number: u32) -> bool {
    number.is_multiple_of(SAMPLE)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Has so many come at one time, again and again, and returns how many of the last ones waited.
    fn wait_of(company: &Company, at_once: usize) -> usize {
        let mut waited = 0;
        for _ in 0..3000 {
            let arrivals: Vec<_> = (0..at_once).filter_map(|_| company.arrive()).collect();
            waited = arrivals.len();
            arrivals.iter().for_each(|arrival| company.leave(arrival, None));
        }
        waited
    }

    #[test]
    fn whoever_has_company_waits_and_whoever_is_alone_does_not() {
        let near_the_end = || Cell::new(u32::MAX - 100);
        let company = Company { arrived: near_the_end(), left: near_the_end(), ..Company::new() };
        for at_once in [1, 8, 1, 2, 3, 1] {
            let expected = if at_once < 3 { 0 } else { at_once };
            // Nobody is the sample at the end of these.
            assert_eq!(wait_of(&company, at_once), expected, "{at_once} at once");
        }
    }

    #[test]
    fn nobody_waits_for_those_who_take_their_time() {
        const MANY: u32 = 16;
        // So many may take longer than one, and each of them may not.
        for (turn, waits) in [(LONGEST_TURN / 2, true), (2 * LONGEST_TURN, false), (LONGEST, false)] {
            let company = Company::new();
            assert_eq!(wait_of(&company, 16), 16);
            for round in 0..1000 {
                let arrivals: Vec<_> = (0..MANY).filter_map(|_| company.arrive()).collect();
                let waiting = arrivals.iter().filter(|arrival| !is_sample(arrival.number)).count();
                assert!(round == 0 || waits == (waiting > 0), "{turn:?}, round {round}");
                for arrival in arrivals {
                    company.leave(&arrival, arrival.at.map(|_| turn * (MANY - 1)));
                }
            }
            assert_eq!(wait_of(&company, 16), 16, "where it no longer takes long");
        }
    }

    #[test]
    fn nobody_waits_long_however_little_each_of_a_crowd_has_to_do() {
        let company = Company { met: Cell::new(MOST), ..Company::new() };
        let first = company.arrive().unwrap();
        assert_eq!((0..1000).filter_map(|_| company.arrive()).count(), 1000);
        company.leave(&first, Some(LONGEST));
        assert_eq!(company.met.get(), MOST);
        company.leave(&first, Some(2 * LONGEST));
        assert_eq!(company.met.get(), 0);
    }

    #[test]
    fn whoever_comes_from_elsewhere_takes_a_turn_too() {
        let (here, there) = (Company { met: Cell::new(MOST), ..Company::new() }, Company::new());
        there.met.set(MOST);
        let one = here.arrive().unwrap();
        (0..MOST).for_each(|_| here.leave(&there.arrive().unwrap(), None));
        here.arrive().unwrap();
        here.leave(&one, Some(LONGEST_TURN * u32::from(MOST)));
        assert_eq!(here.met.get(), MOST);
    }

    #[test]
    fn who_came_elsewhere_does_not_count() {
        let (here, there) = (Company::new(), Company::new());
        for _ in 0..100 * SAMPLE {
            if let Some(arrival) = here.arrive() {
                there.leave(&arrival, None);
            }
        }
        assert_eq!((here.met.get(), there.met.get()), (0, 0));
    }

    #[tokio::test]
    async fn all_who_are_ready_have_read_before_anybody_writes() {
        const MANY: usize = 8;
        let happened = Mutex::new(Vec::new());
        let mut were_in_order = 0;
        for _ in 0..2000 {
            happened.lock().unwrap().clear();
            let one = async |_| {
                happened.lock().unwrap().push("read");
                after_others().await;
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
