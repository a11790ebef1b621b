//! A fair queue of waiting calls: parties are served round-robin, and so are the clients of a party.

use std::collections::BTreeMap;

/// Waiting calls, ordered so that a client with many calls does not delay another client's single call, and a party
/// with many clients does not delay another party.
///
/// The first call of each party comes before the second of any, and so on; within a party the same holds for its
/// clients. Within a round calls are in order of arrival.
#[derive(Debug)]
pub(super) struct FairQueue<P, C, T> {
    /// In the order of clients, whatever their parties.
    waiting: BTreeMap<QueuePosition, QueuedCall<P, C, T>>,
    /// The rounds of the parties that wait: that of a party's first call.
    parties: Vec<(P, u64)>,
    /// The rounds of clients and of parties that are served now. A returning client or party starts there, so that it
    /// gains no priority from the time in which it did not wait.
    client_round: u64,
    party_round: u64,
    arrivals: u64,
}

#[derive(Debug)]
struct QueuedCall<P, C, T> {
    party: P,
    client: C,
    item: T,
}

/// Identifies one call in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuePosition {
    round: u64,
    arrival: u64,
}

impl<P, C, T> Default for FairQueue<P, C, T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), parties: Vec::new(), client_round: 0, party_round: 0, arrivals: 0 }
    }
}

impl<P: PartialEq + Clone, C: PartialEq, T> FairQueue<P, C, T> {
    /// Adds a call of a client behind its other calls.
    pub(super) fn join(&mut self, party: P, client: C, item: T) -> QueuePosition {
        let last = self.waiting.iter().rev().find(|(_, call)| call.client == client);
        let round = last.map_or(self.client_round, |(position, _)| position.round + 1);
        let position = QueuePosition { round, arrival: self.arrivals };
        self.arrivals += 1;
        if !self.parties.iter().any(|(known, _)| *known == party) {
            self.parties.push((party.clone(), self.party_round));
        }
        self.waiting.insert(position, QueuedCall { party, client, item });
        position
    }

    /// Removes a call that was served.
    pub(super) fn serve(&mut self, position: QueuePosition) {
        let Some(call) = self.waiting.remove(&position) else { return };
        // If its client or party returns at once, it comes after the others of the same round.
        self.client_round = self.client_round.max(position.round + 1);
        if let Some((_, round)) = self.parties.iter_mut().find(|(known, _)| *known == call.party) {
            *round += 1;
            self.party_round = self.party_round.max(*round);
        }
        self.forget_absent(&call.party);
    }

    /// Removes a call that no longer waits.
    pub(super) fn leave(&mut self, position: QueuePosition) {
        if let Some(call) = self.waiting.remove(&position) {
            self.forget_absent(&call.party);
        }
    }

    fn forget_absent(&mut self, party: &P) {
        if !self.waiting.values().any(|call| call.party == *party) {
            self.parties.retain(|(known, _)| known != party);
        }
    }

    pub(super) fn get_mut(&mut self, position: QueuePosition) -> Option<&mut T> {
        self.waiting.get_mut(&position).map(|call| &mut call.item)
    }

    /// Returns all calls in the order in which they are served.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (QueuePosition, &C, &T)> {
        let mut rounds: Vec<u64> = self.parties.iter().map(|(_, round)| *round).collect();
        let mut ordered: Vec<_> = self
            .waiting
            .iter()
            .map(|(position, call)| {
                let party = self.parties.iter().position(|(known, _)| *known == call.party);
                let round = party.and_then(|party| rounds.get_mut(party)).map_or(u64::MAX, |round| {
                    *round += 1;
                    *round
                });
                (round, *position, call)
            })
            .collect();
        ordered.sort_by_key(|(round, position, _)| (*round, *position));
        ordered.into_iter().map(|(_, position, call)| (position, &call.client, &call.item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue of one party for each client.
    type PlainQueue = FairQueue<char, char, usize>;

    fn order<P: PartialEq + Clone>(queue: &FairQueue<P, char, usize>) -> String {
        queue.in_order().map(|(_, client, number)| format!("{client}{number} ")).collect()
    }

    #[test]
    fn fair_queue_serves_clients_round_robin() {
        let mut queue = PlainQueue::default();
        let first: Vec<_> = (0..3).map(|number| queue.join('a', 'a', number)).collect();
        queue.join('b', 'b', 0);
        queue.join('c', 'c', 0);
        queue.join('c', 'c', 1);
        assert_eq!(order(&queue), "a0 b0 c0 a1 c1 a2 ");
        queue.serve(first[0]);
        // A new client does not overtake those that wait for their first turn.
        queue.join('d', 'd', 0);
        assert_eq!(order(&queue), "b0 c0 a1 c1 d0 a2 ");
        queue.leave(first[1]);
        assert_eq!(order(&queue), "b0 c0 c1 d0 a2 ");
        assert!(queue.get_mut(first[1]).is_none() && queue.get_mut(first[2]).is_some());
    }

    #[test]
    fn party_with_many_clients_gets_one_turn_in_each_round() {
        let mut queue = FairQueue::<u8, char, usize>::default();
        for (number, client) in ('a'..='y').enumerate() {
            queue.join(1, client, number);
        }
        queue.join(2, 'z', 0);
        queue.join(2, 'z', 1);
        assert!(order(&queue).starts_with("a0 z0 b1 z1 c2 d3 "), "{}", order(&queue));
        // Within the party a client with many calls still delays no other.
        queue.join(1, 'a', 99);
        assert!(order(&queue).ends_with("y24 a99 "), "{}", order(&queue));
    }

    #[test]
    fn party_that_was_served_comes_after_the_others_of_its_round() {
        let mut queue = FairQueue::<u8, char, usize>::default();
        for number in 0..50 {
            let first = queue.join(1, 'a', number);
            let other = queue.join(2, 'b', number);
            queue.serve(first);
            queue.join(1, 'c', number);
            assert_eq!(queue.in_order().next().map(|(at, ..)| at), Some(other), "{number}");
            queue.serve(other);
            let rest: Vec<_> = queue.in_order().map(|(at, ..)| at).collect();
            rest.into_iter().for_each(|at| queue.leave(at));
            assert!(queue.parties.is_empty());
        }
    }

    #[test]
    fn served_client_queues_behind_waiting_clients() {
        let mut queue = PlainQueue::default();
        for number in 0..100 {
            let position = queue.join('a', 'a', number);
            if number == 0 {
                queue.join('b', 'b', 0);
            }
            queue.serve(position);
            queue.join('a', 'a', 1000 + number);
            assert_eq!(queue.in_order().next().map(|(_, client, _)| *client), Some('b'), "{number}");
        }
    }

    #[test]
    fn fair_queue_delays_a_client_by_at_most_one_call_of_each_other() {
        let mut queue = PlainQueue::default();
        for number in 0..500 {
            queue.join('a', 'a', number);
        }
        let mut served = 0;
        for number in 0..50 {
            queue.join('b', 'b', number);
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
