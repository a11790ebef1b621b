use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use trunkline_protocol::Id;

use super::slot::Slot;
use crate::carrier::{Answerer, Arrived, Loss};

/// Requests that were given up and are remembered until the server answers them; one beyond it is never known to be over.
const MOST_ABANDONED: usize = 1024;

/// The requests that are in flight on one channel, and to which of them something belongs.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashMap<u64, Entry, BuildHasherDefault<Spread>>,
    /// How many of them only stand.
    standing: usize,
    /// Those that were given up, within which the server may ask something until it answers them.
    abandoned: HashMap<u64, Answerer, BuildHasherDefault<Spread>>,
}

/// Spreads the bits of an id. We count the ids ourselves, so that no peer can choose them to meet in one place.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// One request in flight.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) slot: Arc<Slot>,
    pub(super) answerer: Answerer,
    pub(super) is_cancellable: bool,
    /// Whether it only stands to tell of changes, so that nothing else belongs to it.
    pub(super) stands: bool,
    /// The server's questions within it that are not answered.
    pub(super) open: Vec<Id>,
}

impl Table {
    pub(super) fn insert(&mut self, id: u64, entry: Entry) {
        self.standing += usize::from(entry.stands);
        // Ids are never used twice, so that nothing is replaced.
        self.entries.insert(id, entry);
    }

    /// Takes a request out, since it is over.
    pub(super) fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        self.standing -= usize::from(entry.stands);
        Some(entry)
    }

    /// Takes a request out whose caller gave it up.
    pub(super) fn abandon(&mut self, id: u64) -> Option<Entry> {
        let entry = self.remove(id)?;
        if entry.answerer.answers() && self.abandoned.len() < MOST_ABANDONED {
            self.abandoned.insert(id, entry.answerer);
        }
        Some(entry)
    }

    /// Takes out a request that was given up, since the server has answered it after all.
    pub(super) fn take_abandoned(&mut self, id: &Id) -> Option<Answerer> {
        self.abandoned.remove(&id.number()?)
    }

    /// Takes out the request that a response names.
    pub(super) fn take(&mut self, id: &Id) -> Option<Entry> {
        self.remove(id.number()?)
    }

    /// Returns the request that an id names, or a token, which is the same here.
    pub(super) fn named(&self, id: &Id) -> Option<&Entry> {
        self.entries.get(&id.number()?)
    }

    /// Reports whether an id names a request.
    pub(super) fn has(&self, id: &Id) -> bool {
        self.named(id).is_some()
    }

    /// Returns the only request in flight, if there is exactly one.
    pub(super) fn only(&self) -> Option<(u64, &Entry)> {
        let mut entries = self.entries.iter();
        entries.next().filter(|_| entries.next().is_none()).map(|(id, entry)| (*id, entry))
    }

    /// Returns the only request in flight that does something, if there is exactly one.
    pub(super) fn only_call(&self) -> Option<&Entry> {
        let mut calls = self.entries.values().filter(|entry| !entry.stands);
        calls.next().filter(|_| calls.next().is_none())
    }

    /// Reports whether more than one request in flight does something.
    pub(super) fn has_several_calls(&self) -> bool {
        self.entries.len() - self.standing > 1
    }

    /// Returns the request within which a question was asked, and whether that is certain; nothing if it cannot be known.
    ///
    /// Nothing on a channel says so. The only request that can be asked is certainly the one. Of several that are answered by
    /// the same caller, or by the client's handler, the oldest is taken that waits for no answer yet (ids grow): whichever it
    /// is, the same party is asked. Where several could be asked nothing is guessed, since a question must not reach another
    /// caller than the one whose request caused it. A request that declared nothing gets the question only if it is alone,
    /// and refuses it, so that its caller learns what was missing.
    pub(super) fn asking(&mut self) -> Option<(&mut Entry, bool)> {
        let answering = || self.entries.values().map(|entry| entry.answerer).filter(|it| it.answers());
        let asked = match answering().next() {
            Some(first) => answering().all(|other| other == first).then_some(first)?,
            None => Answerer::Undeclared,
        };
        let count = self.entries.values().filter(|entry| entry.answerer == asked).count();
        if asked == Answerer::Undeclared && count > 1 {
            return None;
        }
        let eligible = self.entries.iter_mut().filter(|(_, entry)| entry.answerer == asked);
        let oldest = eligible.min_by_key(|(id, entry)| (!entry.open.is_empty(), **id));
        oldest.map(|(_, entry)| (entry, count == 1))
    }

    /// Returns the request within which a question was asked, and forgets that it was.
    pub(super) fn settle(&mut self, question: &Id) -> Option<&Entry> {
        let entry = self.entries.values_mut().find(|entry| entry.open.contains(question))?;
        entry.open.retain(|open| open != question);
        Some(entry)
    }

    /// Ends everything, and returns how much there was.
    pub(super) fn lose(&mut self, loss: &Loss) -> usize {
        let Self { entries, .. } = std::mem::take(self);
        let count = entries.len();
        for entry in entries.into_values() {
            entry.slot.finish(Arrived::Lost(loss.clone()));
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::Raw;

    use super::*;

    use Answerer::{Handler, None as Nothing, Undeclared};

    const ONE: Answerer = Answerer::Caller(1);
    const OTHER: Answerer = Answerer::Caller(2);

    type Listed<'a> = (u64, Answerer, &'a [&'a str]);
    type Case<'a> = (&'a [Listed<'a>], Option<(u64, bool)>);

    fn table(entries: &[Listed<'_>]) -> Table {
        let mut table = Table::default();
        for (id, answerer, open) in entries {
            let open = open.iter().map(|text| Id::from_text(text)).collect();
            let (slot, answerer) = (Arc::default(), *answerer);
            table.insert(*id, Entry { slot, answerer, is_cancellable: true, stands: false, open });
        }
        table
    }

    /// Finds the request that a question is given to, and whether that is certain.
    fn asked(entries: &[Listed<'_>]) -> Option<(u64, bool)> {
        let mut table = table(entries);
        let (found, is_certain) =
            table.asking().map(|(entry, is_only)| (Arc::as_ptr(&entry.slot), is_only))?;
        let id = table.entries.iter().find(|(_, entry)| Arc::as_ptr(&entry.slot) == found)?.0;
        Some((*id, is_certain))
    }

    #[test]
    fn a_question_for_the_handler_goes_to_the_oldest_call_that_waits_for_no_answer() {
        let cases: &[Case<'_>] = &[
            (&[], None),
            (&[(1, Nothing, &[])], None),
            (&[(1, Handler, &[])], Some((1, true))),
            (&[(1, Nothing, &[]), (2, Handler, &[])], Some((2, true))),
            (&[(1, Undeclared, &[]), (2, Handler, &[])], Some((2, true))),
            (&[(3, Handler, &[]), (2, Handler, &[])], Some((2, false))),
            (&[(2, Handler, &["q"]), (3, Handler, &[])], Some((3, false))),
            (&[(2, Handler, &["q"]), (3, Handler, &["r"])], Some((2, false))),
        ];
        for (entries, expected) in cases {
            assert_eq!(asked(entries), *expected, "{entries:?}");
        }
    }

    #[test]
    fn a_question_is_given_to_a_caller_only_if_no_other_can_have_caused_it() {
        let cases: &[Case<'_>] = &[
            (&[(1, ONE, &[])], Some((1, true))),
            (&[(1, Undeclared, &[]), (2, ONE, &[]), (3, Nothing, &[])], Some((2, true))),
            (&[(1, ONE, &["q"])], Some((1, true))),
            (&[(2, ONE, &[]), (1, ONE, &[])], Some((1, false))),
            (&[(1, ONE, &["q"]), (2, ONE, &[])], Some((2, false))),
            (&[(1, ONE, &[]), (2, OTHER, &[])], None),
            (&[(1, ONE, &["q"]), (2, OTHER, &[])], None),
            (&[(1, ONE, &[]), (2, ONE, &[]), (3, OTHER, &[])], None),
            (&[(1, Handler, &[]), (2, ONE, &[])], None),
            (&[(1, Undeclared, &[]), (2, Nothing, &[])], Some((1, true))),
            (&[(1, Undeclared, &[]), (2, Undeclared, &[])], None),
        ];
        for (entries, expected) in cases {
            assert_eq!(asked(entries), *expected, "{entries:?}");
        }
    }

    #[test]
    fn an_abandoned_request_is_remembered_until_it_is_answered_if_it_could_be_asked() {
        let mut table = table(&[(1, ONE, &[]), (2, Handler, &[]), (3, Undeclared, &[]), (4, Nothing, &[])]);
        for id in 1..=4 {
            assert!(table.abandon(id).is_some() && table.abandon(id).is_none(), "{id}");
        }
        let mut answered = |id: u64| table.take_abandoned(&Id::from_number(id));
        assert_eq!([1, 2, 3, 4, 1].map(&mut answered), [Some(ONE), Some(Handler), None, None, None]);
    }

    #[test]
    fn what_only_stands_is_no_call() {
        let entry = |stands| Entry {
            slot: Arc::default(),
            answerer: Nothing,
            is_cancellable: true,
            stands,
            open: Vec::new(),
        };
        let mut table = Table::default();
        for (id, stands, expected) in
            [(1, true, false), (2, true, false), (3, false, false), (4, false, true), (5, true, true)]
        {
            table.insert(id, entry(stands));
            assert_eq!(table.has_several_calls(), expected, "with {id}");
        }
        for (id, expected) in [(1, true), (1, true), (5, true), (3, false), (2, false), (4, false)] {
            table.remove(id);
            assert_eq!(table.has_several_calls(), expected, "without {id}");
        }
        table.insert(6, entry(true));
        assert_eq!(table.lose(&Loss::may_have_reached("gone")), 1);
        assert!(!table.has_several_calls());
    }

    #[test]
    fn a_response_is_matched_by_the_exact_text_of_its_id() {
        let table = table(&[(1, ONE, &[]), (0, ONE, &[])]);
        for (token, known) in [
            ("1", true),
            ("0", true),
            ("\"1\"", false),
            ("1.0", false),
            ("01", false),
            ("-1", false),
            ("1e0", false),
            ("99999999999999999999999", false),
            ("2", false),
        ] {
            let id = Raw::parse(token).ok().and_then(Id::from_raw);
            assert_eq!(id.is_some_and(|id| table.has(&id)), known, "{token}");
        }
    }
}
