//! Decides which connection is evicted for another, once a server has reached its connection limit.

use tokio::time::Instant;

/// A connection, as far as it counts against the limit.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSlot<K> {
    /// The client or principal that it belongs to; `None` if it is shared or unassigned.
    pub(super) owner: Option<K>,
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

/// Decides how an owner gets a further connection, so that no owner evicts another that holds fewer.
///
/// Each active owner has an equal share. An owner at or above its share gives up an idle connection of its own; an
/// owner below its share gets an idle connection of the owner with the most.
pub(super) fn decide_eviction<K: PartialEq>(
    slots: &[ConnectionSlot<K>],
    waiting: &[K],
    mine: Option<&K>,
    most: usize,
) -> EvictionDecision {
    let most = most.max(1);
    if slots.len() < most {
        return EvictionDecision::Free;
    }
    if slots.iter().any(|slot| slot.state == SlotUse::Ending) {
        return EvictionDecision::Wait;
    }
    let held = |owner: Option<&K>| slots.iter().filter(|slot| slot.owner.as_ref() == owner).count();
    let own = mine.map_or(0, |mine| held(Some(mine)));
    let share = (most / active_owners(slots, waiting, mine)).max(1);
    let longest_idle = |is_candidate: &dyn Fn(Option<&K>) -> bool| {
        let idle = slots.iter().enumerate().filter_map(|(at, slot)| match slot.state {
            SlotUse::Idle(since) if is_candidate(slot.owner.as_ref()) => {
                Some((held(slot.owner.as_ref()), since, at))
            }
            _ => None,
        });
        idle.min_by_key(|(held, since, _)| (usize::MAX - held, *since)).map(|(.., at)| at)
    };
    let is_mine = |owner: Option<&K>| owner.is_some() && owner == mine;
    let may_take = |owner: Option<&K>| {
        let theirs = held(owner);
        !is_mine(owner) && (theirs > own || (theirs == own && own < share))
    };
    let unused = longest_idle(&|owner| owner.is_none())
        .or_else(|| longest_idle(&is_mine).filter(|_| own >= share))
        .or_else(|| longest_idle(&may_take))
        .or_else(|| longest_idle(&is_mine));
    unused.map_or(EvictionDecision::Wait, EvictionDecision::Evict)
}

/// Reports whether an owner holds more than its share while another with less waits for a slot: then it gets no lease
/// of its idle connections, so that the other gets the slot.
pub(super) fn exceeds_fair_share<K: PartialEq>(
    slots: &[ConnectionSlot<K>],
    waiting: &[K],
    mine: &K,
    most: usize,
) -> bool {
    let share = (most.max(1) / active_owners(slots, waiting, Some(mine))).max(1);
    let held = |owner: &K| slots.iter().filter(|slot| slot.owner.as_ref() == Some(owner)).count();
    held(mine) > share && waiting.iter().any(|owner| held(owner) < share)
}

/// Counts the owners with a connection or a waiting call.
fn active_owners<K: PartialEq>(slots: &[ConnectionSlot<K>], waiting: &[K], mine: Option<&K>) -> usize {
    let mut known: Vec<&K> = Vec::new();
    for owner in slots.iter().filter_map(|slot| slot.owner.as_ref()).chain(waiting).chain(mine) {
        if !known.contains(&owner) {
            known.push(owner);
        }
    }
    known.len().max(1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Parses slots: the letter of the owner (`-` for none), then `!` for busy, `o` for opening, `x` for closing, or
    /// the seconds of idling.
    fn slots(text: &str, now: Instant) -> Vec<ConnectionSlot<char>> {
        let read = |word: &str| {
            let (owner, state) = word.split_at(1);
            let owner = owner.chars().next().filter(|owner| *owner != '-');
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
        ] {
            let waiting: Vec<char> = waiting.chars().collect();
            let room = decide_eviction(&slots(text, now), &waiting, Some(&mine), most);
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
        ] {
            let waiting: Vec<char> = waiting.chars().collect();
            assert_eq!(
                exceeds_fair_share(&slots(text, now), &waiting, &mine, most),
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
            let held = |owner| slots.iter().filter(|slot| slot.owner == Some(owner)).count();
            if let EvictionDecision::Evict(at) = decide_eviction(&slots, &[], Some(&'a'), 4) {
                let theirs = slots[at].owner.unwrap();
                assert!(held(theirs) >= held('a'), "{text:?}: {at}");
            }
        }
    }
}
