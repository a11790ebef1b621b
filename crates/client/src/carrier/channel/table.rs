use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use trunkline_protocol::Id;

use super::slot::Slot;
use crate::carrier::{Arrived, Loss};

/// The requests that are in flight on one channel, and to which of them something belongs.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashMap<u64, Entry, BuildHasherDefault<Spread>>,
    /// How many of them only stand.
    standing: usize,
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
    pub(super) may_ask: bool,
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

    /// Returns the request to which a question most likely belongs, since nothing on a channel says so.
    ///
    /// That is the oldest one which waits for no answer yet; ids grow, so that the smallest is the oldest. All of them are
    /// of one caller, so that a wrong guess shows a question beside another call of the same party.
    ///
    /// With it comes whether it is the only one that can have asked.
    pub(super) fn asking(&mut self) -> Option<(&mut Entry, bool)> {
        let count = self.entries.values().filter(|entry| entry.may_ask).count();
        let eligible = self.entries.iter_mut().filter(|(_, entry)| entry.may_ask);
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

    fn table(entries: &[(u64, bool, &[&str])]) -> Table {
        let mut table = Table::default();
        for (id, may_ask, open) in entries {
            let open = open.iter().map(|text| Id::from_text(text)).collect();
            let entry =
                Entry { slot: Arc::default(), may_ask: *may_ask, is_cancellable: true, stands: false, open };
            table.insert(*id, entry);
        }
        table
    }

    #[test]
    fn a_question_goes_to_the_oldest_call_that_waits_for_no_answer() {
        type Case<'a> = (&'a [(u64, bool, &'a [&'a str])], Option<u64>);
        let cases: &[Case<'_>] = &[
            (&[], None),
            (&[(1, false, &[])], None),
            (&[(1, true, &[])], Some(1)),
            (&[(1, false, &[]), (2, true, &[])], Some(2)),
            (&[(3, true, &[]), (2, true, &[])], Some(2)),
            (&[(2, true, &["q"]), (3, true, &[])], Some(3)),
            (&[(2, true, &["q"]), (3, true, &["r"])], Some(2)),
        ];
        for (entries, expected) in cases {
            let mut table = table(entries);
            let found = table.asking().map(|(entry, _)| Arc::as_ptr(&entry.slot));
            let id =
                table.entries.iter().find(|(_, e)| Some(Arc::as_ptr(&e.slot)) == found).map(|(id, _)| *id);
            assert_eq!(id, *expected, "{entries:?}");
        }
    }

    #[test]
    fn what_only_stands_is_no_call() {
        let entry = |stands| Entry {
            slot: Arc::default(),
            may_ask: false,
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
        let table = table(&[(1, true, &[]), (0, true, &[])]);
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
