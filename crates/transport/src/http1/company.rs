//! When something is written: at once, or after everybody else who is ready.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

/// Waits until the tasks that are ready by now had their turn, on a thread where there are several.
///
/// To write is to wake somebody, and to leave one's own code for that of the system. A thread that reads all that has come
/// before it writes all that is to be said spends less time on each. A call that is alone would only be held up, so there now
/// and then one finds out whether it has company.
pub async fn after_others() {
    let Some(number) = HERE.with(Company::arrive) else { return };
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
    HERE.with(|company| company.leave(number));
}

thread_local! {
    static HERE: Company = const { Company { arrived: Cell::new(0), met: Cell::new(0) } };
}

/// Who was about to write on one thread.
#[derive(Debug)]
struct Company {
    /// How many there were so far.
    arrived: Cell<u32>,
    /// How many of them met somebody, of late, less those who met nobody.
    met: Cell<u8>,
}

/// From here on everybody waits, and beyond the other nothing is counted, or a thread that was busy once would be so for long.
const ENOUGH: u8 = 4;
const MOST: u8 = 8;

/// One of so many waits where nobody else does. Few do, since it may wake a thread for nothing; and the number is prime, or it
/// might always be the last of a crowd, which meets nobody.
const SAMPLE: u32 = 509;

impl Company {
    /// Takes note of somebody who is about to write; returns a number if it should wait.
    fn arrive(&self) -> Option<u32> {
        let number = self.arrived.get().wrapping_add(1);
        self.arrived.set(number);
        (self.met.get() >= ENOUGH || number.is_multiple_of(SAMPLE)).then_some(number)
    }

    /// Takes note of whether anybody came while this one waited.
    fn leave(&self, number: u32) {
        let met = self.met.get();
        let was_alone = self.arrived.get() == number;
        self.met.set(if was_alone { met.saturating_sub(1) } else { MOST.min(met + 1) });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Has so many come at one time, again and again, and returns how many of the last ones waited.
    fn wait_of(company: &Company, at_once: usize) -> usize {
        let mut waited = 0;
        for _ in 0..3000 {
            let numbers: Vec<_> = (0..at_once).filter_map(|_| company.arrive()).collect();
            waited = numbers.len();
            numbers.into_iter().for_each(|number| company.leave(number));
        }
        waited
    }

    #[test]
    fn whoever_has_company_waits_and_whoever_is_alone_does_not() {
        let company = Company { arrived: Cell::new(u32::MAX - 100), met: Cell::new(0) };
        for at_once in [1, 8, 1, 3, 1] {
            let expected = if at_once == 1 { 0 } else { at_once };
            // Nobody is the sample at the end of these.
            assert_eq!(wait_of(&company, at_once), expected, "{at_once} at once");
        }
    }

    #[tokio::test]
    async fn all_who_are_ready_have_read_before_anybody_writes() {
        const MANY: usize = 8;
        let happened = Mutex::new(Vec::new());
        for _ in 0..1000 {
            happened.lock().unwrap().clear();
            let one = async |_| {
                happened.lock().unwrap().push("read");
                after_others().await;
                happened.lock().unwrap().push("write");
            };
            futures_util::future::join_all((0..MANY).map(one)).await;
        }
        assert_eq!(*happened.lock().unwrap(), [["read"; MANY], ["write"; MANY]].concat());
    }
}
