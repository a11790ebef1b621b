//! A fair queue of waiting calls: clients are served round-robin.

use std::collections::BTreeMap;

/// Waiting calls, ordered so that a client with many calls does not delay another client's single call.
///
/// The first call of each client comes before the second of any, and so on; within a round calls are in order of
/// arrival.
#[derive(Debug)]
pub(super) struct FairQueue<C, T> {
    waiting: BTreeMap<QueuePosition, (C, T)>,
    /// The round that is served now. A returning client starts there, so that it gains no priority from the time in
    /// which it did not wait.
    round: u64,
    arrivals: u64,
}

/// The position of one call in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuePosition {
    round: u64,
    arrival: u64,
}

impl<C, T> Default for FairQueue<C, T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), round: 0, arrivals: 0 }
    }
}

impl<C: PartialEq, T> FairQueue<C, T> {
    /// Adds a call of a client behind its other calls.
    pub(super) fn join(&mut self, client: C, item: T) -> QueuePosition {
        let last = self.waiting.iter().rev().find(|(_, (known, _))| *known == client);
        let round = last.map_or(self.round, |(position, _)| position.round + 1);
        let position = QueuePosition { round, arrival: self.arrivals };
        self.arrivals += 1;
        self.waiting.insert(position, (client, item));
        position
    }

    /// Removes a call that was served.
    pub(super) fn serve(&mut self, position: QueuePosition) {
        if self.waiting.remove(&position).is_some() {
            // If its client returns at once, it comes after the other clients of the same round.
            self.round = self.round.max(position.round + 1);
        }
    }

    /// Removes a call that no longer waits.
    pub(super) fn leave(&mut self, position: QueuePosition) {
        self.waiting.remove(&position);
    }

    pub(super) fn get_mut(&mut self, position: QueuePosition) -> Option<&mut T> {
        self.waiting.get_mut(&position).map(|(_, item)| item)
    }

    /// Returns all calls in the order in which they are served.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (QueuePosition, &C, &T)> {
        self.waiting.iter().map(|(position, (client, item))| (*position, client, item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: &FairQueue<char, usize>) -> String {
        queue.in_order().map(|(_, client, number)| format!("{client}{number} ")).collect()
    }

    #[test]
    fn fair_queue_serves_clients_round_robin() {
        let mut queue = FairQueue::default();
        let first: Vec<_> = (0..3).map(|number| queue.join('a', number)).collect();
        queue.join('b', 0);
        queue.join('c', 0);
        queue.join('c', 1);
        assert_eq!(order(&queue), "a0 b0 c0 a1 c1 a2 ");
        queue.serve(first[0]);
        // A new client does not overtake those that wait for their first turn.
        queue.join('d', 0);
        assert_eq!(order(&queue), "b0 c0 a1 c1 d0 a2 ");
        queue.leave(first[1]);
        assert_eq!(order(&queue), "b0 c0 c1 d0 a2 ");
        assert!(queue.get_mut(first[1]).is_none() && queue.get_mut(first[2]).is_some());
    }

    #[test]
    fn served_client_queues_behind_waiting_clients() {
        let mut queue = FairQueue::default();
        for number in 0..100 {
            let position = queue.join('a', number);
            if number == 0 {
                queue.join('b', 0);
            }
            queue.serve(position);
            queue.join('a', 1000 + number);
            assert_eq!(queue.in_order().next().map(|(_, client, _)| *client), Some('b'), "{number}");
        }
    }

    #[test]
    fn fair_queue_delays_a_client_by_at_most_one_call_of_each_other() {
        let mut queue = FairQueue::default();
        for number in 0..500 {
            queue.join('a', number);
        }
        let mut served = 0;
        for number in 0..50 {
            queue.join('b', number);
            loop {
                let (position, client, _) =
                    queue.in_order().next().map(|(at, known, _)| (at, *known, ())).unwrap();
                queue.serve(position);
                served += 1;
                if client == 'b' {
                    break;
                }
            }
        }
        assert!(served <= 2 * 50 + 1, "{served}");
        assert_eq!(queue.in_order().count(), 500 + 50 - served);
    }
}
