//! Which connection makes room for another, where a server has as many as it may have.

use tokio::time::Instant;

/// A connection, as far as it counts against those that there may be.
#[derive(Clone, Debug)]
pub(super) struct ConnectionSlot<K> {
    /// The client or principal that it is kept for; nothing if it is kept for all or for none.
    pub(super) owner: Option<K>,
    pub(super) state: SlotUse,
}

/// How a connection is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotUse {
    /// It is not used, since then.
    Idle(Instant),
    Busy,
    /// It is being made.
    Opening,
    /// It ends.
    Ending,
}

/// What is to be done for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EvictionDecision {
    /// There is some.
    Free,
    /// This connection is to be ended.
    Evict(usize),
    /// Nothing: one that is in use has to become free.
    Wait,
}

/// Decides how an owner gets a further connection, so that none takes the place of another that holds less.
///
/// Each owner that is active has an equal share. An owner that has its share or more gives up what it does not use itself;
/// one that has less may have what the one with the most connections does not use.
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

/// Reports whether an owner holds more than its share while another that holds less waits for room: then it does not begin to use
/// a connection that it does not use now, so that the other gets its place.
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

/// Counts the owners that have a connection or wait for one.
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

    /// Reads connections: the letter of their owner (`-` for none), and whether they are in use (`!`), being made (`o`), ending (`x`) or idle, for
    /// so many seconds.
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
    fn room_is_made_by_those_who_hold_most_and_never_by_those_who_hold_less() {
        use EvictionDecision::{Evict, Free, Wait};
        let now = Instant::now() + Duration::from_secs(3600);
        for (text, waiting, mine, most, expected) in [
            ("", "", 'a', 1, Free),
            ("a! b!", "", 'a', 3, Free),
            // What ends already is waited for.
            ("a5 bx", "", 'a', 2, Wait),
            // What is kept for none goes first.
            ("a9 -1 b9", "", 'b', 3, Evict(1)),
            // One owner alone ends what it has not used for longest.
            ("a1 a3 a2", "", 'a', 3, Evict(1)),
            ("a! a! a!", "", 'a', 3, Wait),
            // One that holds more gives up its own, however long another has not used its only one.
            ("a1 a2 a3 b9", "", 'a', 4, Evict(2)),
            ("a! a! a! b9", "", 'a', 4, Wait),
            // One that holds less gets what the other does not use.
            ("a1 a2 a! b!", "", 'b', 4, Evict(1)),
            ("a1 a2 a! a!", "", 'b', 4, Evict(1)),
            // What is in use or being made is waited for.
            ("a! a! a! a!", "", 'b', 4, Wait),
            ("a! ao ao b!", "", 'b', 4, Wait),
            ("a! b! c!", "", 'd', 3, Wait),
            // The one with the most connections gives up first.
            ("a9 b1 b1 b1", "", 'c', 4, Evict(1)),
            // Those who wait count too: with three at four connections the share is one.
            ("a! a! b! b!", "c", 'a', 4, Wait),
            ("a! a! a! b1", "c", 'b', 4, Evict(3)),
            // Where all hold the same, the one that is unused for longest goes.
            ("a1 b2 c3", "", 'd', 3, Evict(2)),
        ] {
            let waiting: Vec<char> = waiting.chars().collect();
            let room = decide_eviction(&slots(text, now), &waiting, Some(&mine), most);
            assert_eq!(room, expected, "{text:?} for {mine} with {waiting:?}");
        }
    }

    #[test]
    fn an_owner_above_its_share_leaves_its_next_place_to_one_below_that_waits() {
        let now = Instant::now() + Duration::from_secs(3600);
        for (text, waiting, mine, most, expected) in [
            ("a! a! a!", "", 'a', 3, false),
            ("a! a! a!", "b", 'a', 3, true),
            ("a! a1 a!", "b", 'a', 3, true),
            // It has its share, or the other has.
            ("a! b!", "b", 'a', 2, false),
            ("a! a! b!", "b", 'a', 3, false),
            ("a! a! b! b!", "b", 'a', 4, false),
            ("a! a! a! b!", "b", 'a', 4, true),
            // With three the share is one.
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
    fn an_owner_never_ends_what_another_has_while_it_holds_more() {
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
