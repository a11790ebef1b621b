//! Makes room at the limit of sessions: the party that holds the most loses its oldest idle ones, so that one client with
//! many sessions does not lock the others out.

use std::collections::HashMap;

use trunkline_session::{Principal, SessionId, Timestamp};

use crate::party::ClientParty;

/// A session, as far as it matters for eviction.
#[derive(Clone, Debug)]
pub(crate) struct EvictableSession {
    pub(crate) id: SessionId,
    pub(crate) principal: Principal,
    pub(crate) party: ClientParty,
    /// When it was last used; `None` if a call runs or a stream is open.
    pub(crate) idle_since: Option<Timestamp>,
}

/// Which parties may lose sessions to a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EvictionScope {
    /// Those that hold more than the party of the new session, and that party itself.
    Larger,
    /// The party of the new session alone.
    Own,
}

/// This part of the sessions of a party is evicted at once, at least one: several, so that a full table is not searched for
/// each new session.
const EVICTED_FRACTION: usize = 128;

/// Chooses the sessions to end: the oldest idle ones of the party that holds the most and has any.
pub(crate) fn choose_evicted(
    candidates: Vec<EvictableSession>,
    newcomer: &ClientParty,
    scope: EvictionScope,
) -> Vec<EvictableSession> {
    let mut by_party: HashMap<ClientParty, (usize, Vec<EvictableSession>)> = HashMap::new();
    for candidate in candidates {
        let (count, idle) = by_party.entry(candidate.party.clone()).or_default();
        *count += 1;
        if candidate.idle_since.is_some() {
            idle.push(candidate);
        }
    }
    let own = by_party.get(newcomer).map_or(0, |(count, _)| *count);
    let may_lose = |party: &ClientParty, count: usize| {
        party == newcomer || (scope == EvictionScope::Larger && count > own)
    };
    let oldest = |idle: &[EvictableSession]| idle.iter().filter_map(|candidate| candidate.idle_since).min();
    let largest = by_party
        .into_iter()
        .filter(|(party, (count, idle))| !idle.is_empty() && may_lose(party, *count))
        .max_by_key(|(_, (count, idle))| (*count, std::cmp::Reverse(oldest(idle))));
    let Some((_, (count, mut idle))) = largest else { return Vec::new() };
    idle.sort_by_key(|candidate| candidate.idle_since);
    idle.truncate((count / EVICTED_FRACTION).max(1));
    idle
}

#[cfg(test)]
mod tests {
    use super::*;

    fn party(name: &str) -> ClientParty {
        ClientParty::Principal(Principal::Named(name.into()))
    }

    /// Makes candidates of words such as `a3` and `b-`: a party, and when it was last used or that it is busy.
    fn candidates(words: &str) -> Vec<EvictableSession> {
        let read = |word: &str| {
            let (name, used) = word.split_at(1);
            EvictableSession {
                id: SessionId::random(),
                principal: Principal::Named(name.into()),
                party: party(name),
                idle_since: used.parse().ok().map(Timestamp),
            }
        };
        words.split_whitespace().map(read).collect()
    }

    fn evicted(words: &str, newcomer: &str, scope: EvictionScope) -> String {
        let chosen = choose_evicted(candidates(words), &party(newcomer), scope);
        let word = |candidate: &EvictableSession| {
            format!("{}{}", candidate.principal, candidate.idle_since.unwrap().0)
        };
        chosen.iter().map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn very_large_party_loses_several_sessions_at_once() {
        let flood: Vec<String> = (0..300).map(|number| format!("a{number}")).collect();
        assert_eq!(evicted(&flood.join(" "), "b", EvictionScope::Larger), "a0 a1");
    }

    #[test]
    fn largest_party_loses_its_oldest_idle_session() {
        use EvictionScope::{Larger, Own};
        for (words, newcomer, scope, expected) in [
            ("a1 a2 a3 b0", "b", Larger, "a1"),
            ("a1 a2 a3 b0", "c", Larger, "a1"),
            ("a1 a2 a3 b0", "a", Larger, "a1"),
            // What is busy stays.
            ("a- a2 a3 b0", "c", Larger, "a2"),
            ("a- a- a- b0 b1", "c", Larger, "b0"),
            // A party never takes from one that holds as many or fewer.
            ("a- a- a- b0 b1", "a", Larger, ""),
            ("a- b0", "a", Larger, ""),
            ("a3 b0 c1", "d", Larger, "b0"),
            // Its own quota is its own problem.
            ("a3 a2 b0 b1 b2", "a", Own, "a2"),
            ("a- a- b0 b1 b2", "a", Own, ""),
            ("", "a", Larger, ""),
        ] {
            assert_eq!(evicted(words, newcomer, scope), expected, "{words} {newcomer} {scope:?}");
        }
    }
}
