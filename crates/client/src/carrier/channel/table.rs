use std::collections::HashMap;
use std::sync::Arc;

use trunkline_protocol::{Id, Request};

use super::slot::Slot;
use crate::carrier::{Arrived, Loss};

/// The requests that are in flight on one channel, and to which of them something belongs.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashMap<u64, Entry>,
}

/// One request in flight.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) slot: Arc<Slot>,
    pub(super) may_ask: bool,
    pub(super) is_cancellable: bool,
    /// The server's questions within it that are not answered.
    pub(super) open: Vec<Asked>,
    /// The number of questions within it so far.
    pub(super) asked: usize,
}

/// A question that is open.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) question: Request,
    /// Whether it may belong to another request.
    pub(super) is_guess: bool,
}

/// Questions that one request is asked before others are taken for the one that is meant. A server may ask for many at one
/// time, and the oldest must not run out of the number of times that it may be asked because of them.
const FAIR_SHARE: usize = 8;

impl Table {
    pub(super) fn insert(&mut self, id: u64, entry: Entry) {
        self.entries.insert(id, entry);
    }

    /// Takes a request out, since it is over.
    pub(super) fn remove(&mut self, id: u64) -> Option<Entry> {
        self.entries.remove(&id)
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

    /// Returns the request to which a question most likely belongs, since nothing on a channel says so.
    ///
    /// That is the oldest one which waits for no answer yet; ids grow, so that the smallest is the oldest. All of them are
    /// of one caller, so that a wrong guess shows a question beside another call of the same party.
    pub(super) fn asking(&mut self) -> Option<&mut Entry> {
        let eligible = self.entries.iter_mut().filter(|(_, entry)| entry.may_ask);
        eligible
            .min_by_key(|(id, entry)| (!entry.open.is_empty(), entry.asked / FAIR_SHARE, **id))
            .map(|(_, entry)| entry)
    }

    /// Finds the request to which a question belongs, and notes that it was asked there.
    pub(super) fn ask(&mut self, question: &Request) -> Option<&Entry> {
        let is_guess = self.entries.values().filter(|entry| entry.may_ask).nth(1).is_some();
        let entry = self.asking()?;
        entry.asked += 1;
        entry.open.push(Asked { question: question.clone(), is_guess });
        Some(entry)
    }

    /// Returns the request within which a question was asked, and forgets that it was.
    pub(super) fn settle(&mut self, question: &Id) -> Option<&Entry> {
        let asked = |entry: &&mut Entry| entry.open.iter().any(|open| open.question.id == *question);
        let entry = self.entries.values_mut().find(asked)?;
        entry.open.retain(|open| open.question.id != *question);
        Some(entry)
    }

    /// Ends everything, and returns how much there was.
    pub(super) fn lose(&mut self, loss: &Loss) -> usize {
        let count = self.entries.len();
        for entry in std::mem::take(&mut self.entries).into_values() {
            entry.slot.finish(Arrived::Lost(loss.clone()));
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::envelope::{Bounds, Incoming, read_text};
    use trunkline_protocol::{Message, Raw};

    use super::*;

    fn question(id: &str) -> Request {
        let text = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"roots/list"}}"#);
        match read_text(&text.into(), Bounds::default()).unwrap() {
            Incoming::One(Message::Request(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    fn table(entries: &[(u64, bool, &[&str])]) -> Table {
        let mut table = Table::default();
        for (id, may_ask, open) in entries {
            let asked = |id: &&str| Asked { question: question(id), is_guess: true };
            table.insert(*id, Entry { open: open.iter().map(asked).collect(), ..Entry::new(*may_ask) });
        }
        table
    }

    impl Entry {
        fn new(may_ask: bool) -> Self {
            Self { slot: Arc::default(), may_ask, is_cancellable: true, open: Vec::new(), asked: 0 }
        }
    }

    #[test]
    fn a_question_is_a_guess_only_where_it_can_be_anothers_and_nobody_is_asked_for_all() {
        let mut table = table(&[(1, true, &[]), (2, false, &[])]);
        assert!(table.ask(&question("a")).unwrap().open.iter().all(|asked| !asked.is_guess));
        table.insert(3, Entry::new(true));
        table.settle(&Id::from_text("a"));
        for number in 0..2 * FAIR_SHARE {
            let id = format!("q{number}");
            assert!(table.ask(&question(&id)).unwrap().open.iter().all(|asked| asked.is_guess));
            table.settle(&Id::from_text(&id));
        }
        let asked = |id: u64| table.entries[&id].asked;
        assert_eq!((asked(1), asked(2), asked(3)), (FAIR_SHARE + 1, 0, FAIR_SHARE));
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
            let found = table.asking().map(|entry| Arc::as_ptr(&entry.slot));
            let id =
                table.entries.iter().find(|(_, e)| Some(Arc::as_ptr(&e.slot)) == found).map(|(id, _)| *id);
            assert_eq!(id, *expected, "{entries:?}");
        }
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
