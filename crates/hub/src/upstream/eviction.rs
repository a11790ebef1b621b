//! Decides which connection is evicted for another, once a server has reached its connection limit.

use tokio::time::Instant;

/// The owner of a connection. Connections are shared out among parties first, and then among the clients of a party, so
/// that a party gets no more of them by being many clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotOwner<K> {
    /// A principal, or the host of anonymous clients.
    pub(super) party: K,
    pub(super) client: K,
}

impl<K: Clone> SlotOwner<K> {
    /// Returns the owner that is a party by itself.
    pub(super) fn alone(client: K) -> Self {
        Self { party: client.clone(), client }
    }
}

/// A connection, as far as it counts against the limit.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSlot<K> {
    /// The owner; `None` if it is shared or unassigned.
    pub(super) owner: Option<SlotOwner<K>>,
    pub(super) state: SlotUse,
}

/// How a connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotUse {
    /// Unused since this time.
    Idle(Instant),
    Busy,
    /// Being opened.
    Opening,
    /// Being closed.
    Ending,
}

/// How a further connection can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EvictionDecision {
    /// The limit is not reached.
    Free,
    /// This connection has to be closed first.
    Evict(usize),
    /// A connection in use has to become free first.
    Wait,
}

/// Decides how an owner gets a further connection, so that no party evicts another that holds fewer, and no client of a
/// party another of the same party that holds fewer.
///
/// Each active party has an equal share. A party at or above its share gives up an idle connection of its own; a party
/// below its share gets an idle connection of the party with the most. Within a party the same holds for its clients.
pub(super) fn decide_eviction<K: PartialEq>(
    slots: &[ConnectionSlot<K>],
    waiting: &[SlotOwner<K>],
    mine: Option<&SlotOwner<K>>,
    most: usize,
) -> EvictionDecision {
    let most = most.max(1);
    if slots.len() < most {
        return EvictionDecision::Free;
    }
    if slots.iter().any(|slot| slot.state == SlotUse::Ending) {
        return EvictionDecision::Wait;
    }
    let owned = |slot: &ConnectionSlot<K>| slot.owner.is_some();
    let unowned = slots.iter().enumerate().filter_map(|(at, slot)| match slot.state {
        SlotUse::Idle(since) if !owned(slot) => Some((since, at)),
        _ => None,
    });
    if let Some((_, at)) = unowned.min() {
        return EvictionDecision::Evict(at);
    }
    let parties = SlotLevel::new(slots, waiting, |_| true, |owner| &owner.party);
    let party = parties.choose(mine.map(|mine| &mine.party), most);
    let Some(party) = party else { return EvictionDecision::Wait };
    let clients = SlotLevel::new(slots, waiting, |owner| owner.party == *party, |owner| &owner.client);
    let held = clients.slots.len();
    let chosen = match mine {
        Some(mine) if mine.party == *party => clients.choose(Some(&mine.client), held),
        _ => clients.choose(None, held),
    };
    let evicted = chosen.and_then(|client| clients.longest_idle(client));
    evicted.map_or(EvictionDecision::Wait, EvictionDecision::Evict)
}

/// Reports whether an owner holds more than its share while another with less waits for a slot: then it gets no lease
/// of its idle connections, so that the other gets the slot.
pub(super) fn exceeds_fair_share<K: PartialEq>(
    slots: &[ConnectionSlot<K>],
    waiting: &[SlotOwner<K>],
    mine: &SlotOwner<K>,
    most: usize,
) -> bool {
    let parties = SlotLevel::new(slots, waiting, |_| true, |owner| &owner.party);
    let clients = SlotLevel::new(slots, waiting, |owner| owner.party == mine.party, |owner| &owner.client);
    let held = parties.held(&mine.party);
    parties.exceeds_share(&mine.party, most) || clients.exceeds_share(&mine.client, held)
}

/// Slots with their owners at one level: parties, or the clients of one party.
struct SlotLevel<'s, K> {
    /// The index, owner and use of each slot.
    slots: Vec<(usize, &'s K, SlotUse)>,
    waiting: Vec<&'s K>,
}

impl<'s, K: PartialEq> SlotLevel<'s, K> {
    fn new(
        slots: &'s [ConnectionSlot<K>],
        waiting: &'s [SlotOwner<K>],
        is_part: impl Fn(&SlotOwner<K>) -> bool,
        key: impl Fn(&'s SlotOwner<K>) -> &'s K,
    ) -> Self {
        let slots = slots.iter().enumerate().filter_map(|(at, slot)| {
            let owner = slot.owner.as_ref().filter(|owner| is_part(owner))?;
            Some((at, key(owner), slot.state))
        });
        let waiting = waiting.iter().filter(|owner| is_part(owner)).map(&key);
        Self { slots: slots.collect(), waiting: waiting.collect() }
    }

    fn held(&self, owner: &K) -> usize {
        self.slots.iter().filter(|(_, other, _)| *other == owner).count()
    }

    /// Returns the equal share of each owner with a connection or a waiting call.
    fn share(&self, mine: Option<&K>, most: usize) -> usize {
        let mut known: Vec<&K> = Vec::new();
        for owner in
            self.slots.iter().map(|(_, owner, _)| *owner).chain(self.waiting.iter().copied()).chain(mine)
        {
            if !known.contains(&owner) {
                known.push(owner);
            }
        }
        (most.max(1) / known.len().max(1)).max(1)
    }

    fn longest_idle(&self, owner: &K) -> Option<usize> {
        let idle = self.slots.iter().filter_map(|(at, other, state)| match state {
            SlotUse::Idle(since) if *other == owner => Some((*since, *at)),
            _ => None,
        });
        idle.min().map(|(_, at)| at)
    }

    /// Chooses the owner that gives up an idle connection for `mine`.
    fn choose(&self, mine: Option<&K>, most: usize) -> Option<&'s K> {
        let own = mine.map_or(0, |mine| self.held(mine));
        let share = self.share(mine, most);
        let largest = |is_candidate: &dyn Fn(&K) -> bool| {
            let idle = self.slots.iter().filter_map(|(at, owner, state)| match state {
                SlotUse::Idle(since) if is_candidate(owner) => Some((self.held(owner), *since, *at, *owner)),
                _ => None,
            });
            idle.min_by_key(|(held, since, at, _)| (usize::MAX - held, *since, *at)).map(|(.., owner)| owner)
        };
        let is_mine = |owner: &K| Some(owner) == mine;
        let may_take = |owner: &K| {
            let theirs = self.held(owner);
            !is_mine(owner) && (theirs > own || (theirs == own && own < share))
        };
        largest(&is_mine)
            .filter(|_| own >= share)
            .or_else(|| largest(&may_take))
            .or_else(|| largest(&is_mine))
    }

    fn exceeds_share(&self, mine: &K, most: usize) -> bool {
        let share = self.share(Some(mine), most);
        self.held(mine) > share && self.waiting.iter().any(|owner| self.held(owner) < share)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Returns an owner by its letter: a small one is a party by itself, and capitals are clients of one party.
    fn owner(letter: char) -> SlotOwner<char> {
        SlotOwner { party: if letter.is_uppercase() { '*' } else { letter }, client: letter }
    }

    /// Parses slots: the letter of the owner (`-` for none), then `!` for busy, `o` for opening, `x` for closing, or
    /// the seconds of idling.
    fn slots(text: &str, now: Instant) -> Vec<ConnectionSlot<char>> {
        let read = |word: &str| {
            let (owner, state) = word.split_at(1);
            let owner = owner.chars().next().filter(|owner| *owner != '-').map(self::owner);
            let state = match state {
                "!" => SlotUse::Busy,
                "x" => SlotUse::Ending,
                "o" => SlotUse::Opening,
                idle => SlotUse::Idle(now - Duration::from_secs(idle.parse().unwrap())),
            };
            ConnectionSlot { owner, state }
        };
        text.split_whitespace().map(read).collect()
    }

    #[test]
    fn eviction_takes_from_the_owner_with_the_most_connections() {
        use EvictionDecision::{Evict, Free, Wait};
        let now = Instant::now() + Duration::from_secs(3600);
        for (text, waiting, mine, most, expected) in [
            ("", "", 'a', 1, Free),
            ("a! b!", "", 'a', 3, Free),
            // A connection that is closing already is waited for.
            ("a5 bx", "", 'a', 2, Wait),
            // A connection without an owner is evicted first.
            ("a9 -1 b9", "", 'b', 3, Evict(1)),
            // A single owner evicts its longest idle connection.
            ("a1 a3 a2", "", 'a', 3, Evict(1)),
            ("a! a! a!", "", 'a', 3, Wait),
            // An owner with more gives up its own, however long another's only connection is idle.
            ("a1 a2 a3 b9", "", 'a', 4, Evict(2)),
            ("a! a! a! b9", "", 'a', 4, Wait),
            // An owner with less gets an idle connection of the other.
            ("a1 a2 a! b!", "", 'b', 4, Evict(1)),
            ("a1 a2 a! a!", "", 'b', 4, Evict(1)),
            // Connections that are busy or opening are waited for.
            ("a! a! a! a!", "", 'b', 4, Wait),
            ("a! ao ao b!", "", 'b', 4, Wait),
            ("a! b! c!", "", 'd', 3, Wait),
            // The owner with the most connections gives up first.
            ("a9 b1 b1 b1", "", 'c', 4, Evict(1)),
            // Waiting owners count too: with three owners at four connections the share is one.
            ("a! a! b! b!", "c", 'a', 4, Wait),
            ("a! a! a! b1", "c", 'b', 4, Evict(3)),
            // If all hold the same, the longest idle connection is evicted.
            ("a1 b2 c3", "", 'd', 3, Evict(2)),
            // Many clients of one party are one party: they evict each other, and no other party.
            ("A1 B2 C3 d9", "", 'E', 4, Evict(2)),
            ("A! B! C! d9", "", 'E', 4, Wait),
            ("A1 B2 c9 d9", "", 'E', 4, Evict(1)),
            // Another party takes from them, and from the client with the most.
            ("A9 B1 B2 C9", "", 'd', 4, Evict(2)),
            ("A9 B1 B2 c!", "", 'c', 4, Evict(2)),
            // Within the party a client with more gives up its own.
            ("A1 A2 B9 c!", "", 'A', 4, Evict(1)),
            ("A1 A2 B! c!", "", 'B', 4, Evict(1)),
        ] {
            let waiting: Vec<_> = waiting.chars().map(owner).collect();
            let room = decide_eviction(&slots(text, now), &waiting, Some(&owner(mine)), most);
            assert_eq!(room, expected, "{text:?} for {mine} with {waiting:?}");
        }
    }

    #[test]
    fn owner_above_its_share_yields_to_a_waiting_owner_below_its_share() {
        let now = Instant::now() + Duration::from_secs(3600);
        for (text, waiting, mine, most, expected) in [
            ("a! a! a!", "", 'a', 3, false),
            ("a! a! a!", "b", 'a', 3, true),
            ("a! a1 a!", "b", 'a', 3, true),
            // Either owner is at its share.
            ("a! b!", "b", 'a', 2, false),
            ("a! a! b!", "b", 'a', 3, false),
            ("a! a! b! b!", "b", 'a', 4, false),
            ("a! a! a! b!", "b", 'a', 4, true),
            // With three owners the share is one.
            ("a! a! b!", "c", 'a', 3, true),
            ("a! a! b!", "c", 'b', 3, false),
            // Clients of one party share its part alone, among themselves too.
            ("A! B! C! d!", "d", 'A', 4, true),
            ("A! B! c! d!", "E", 'A', 4, false),
            ("A! A! c! d!", "E", 'A', 4, true),
        ] {
            let waiting: Vec<_> = waiting.chars().map(owner).collect();
            assert_eq!(
                exceeds_fair_share(&slots(text, now), &waiting, &owner(mine), most),
                expected,
                "{text:?} for {mine}"
            );
        }
    }

    #[test]
    fn owner_never_evicts_an_owner_with_fewer_connections() {
        let now = Instant::now() + Duration::from_secs(3600);
        let states = ["!", "1", "2"];
        // Every state of four connections of three owners.
        for number in 0..9usize.pow(4) {
            let word = |at: u32| {
                let digit = number / 9usize.pow(at) % 9;
                format!("{}{}", ['a', 'b', 'c'][digit / 3], states[digit % 3])
            };
            let text: Vec<String> = (0..4).map(word).collect();
            let slots = slots(&text.join(" "), now);
            let held = |letter| slots.iter().filter(|slot| slot.owner == Some(owner(letter))).count();
            if let EvictionDecision::Evict(at) = decide_eviction(&slots, &[], Some(&owner('a')), 4) {
                let theirs = slots[at].owner.as_ref().unwrap().client;
                assert!(held(theirs) >= held('a'), "{text:?}: {at}");
            }
        }
    }
}
