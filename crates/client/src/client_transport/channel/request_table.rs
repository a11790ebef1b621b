use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use trunkline_protocol::RequestId;

use super::response_slot::ResponseSlot;
use crate::client_transport::{ExchangeEvent, InputRecipient, TransportFailure};

/// Abandoned requests that are tracked until the server responds; a request beyond it stays counted as running.
const MAX_ABANDONED: usize = 1024;

/// The requests in flight on one channel, and how messages are attributed to them.
#[derive(Debug, Default)]
pub(super) struct RequestTable {
    entries: HashMap<u64, RequestEntry, BuildHasherDefault<RequestIdHasher>>,
    /// How many of them are subscriptions.
    subscription_count: usize,
    /// Abandoned requests, within which the server may request input until it responds.
    abandoned: HashMap<u64, InputRecipient, BuildHasherDefault<RequestIdHasher>>,
}

/// Hashes a request id. The ids are our own counter, so that a peer cannot choose colliding ones.
#[derive(Default)]
struct RequestIdHasher(u64);

impl Hasher for RequestIdHasher {
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
pub(super) struct RequestEntry {
    pub(super) slot: Arc<ResponseSlot>,
    pub(super) recipient: InputRecipient,
    pub(super) is_cancellable: bool,
    /// Whether it is a subscription, which no input request or log message belongs to.
    pub(super) is_subscription: bool,
    /// The server's open input requests within it.
    pub(super) open_requests: Vec<RequestId>,
}

impl RequestTable {
    pub(super) fn insert(&mut self, id: u64, entry: RequestEntry) {
        self.subscription_count += usize::from(entry.is_subscription);
        // Ids are never used twice, so that nothing is replaced.
        self.entries.insert(id, entry);
    }

    /// Removes a request that has ended.
    pub(super) fn remove(&mut self, id: u64) -> Option<RequestEntry> {
        let entry = self.entries.remove(&id)?;
        self.subscription_count -= usize::from(entry.is_subscription);
        Some(entry)
    }

    /// Removes a request that its caller dropped.
    pub(super) fn abandon(&mut self, id: u64) -> Option<RequestEntry> {
        let entry = self.remove(id)?;
        if entry.recipient.can_answer() && self.abandoned.len() < MAX_ABANDONED {
            self.abandoned.insert(id, entry.recipient);
        }
        Some(entry)
    }

    /// Removes an abandoned request that the server has answered after all.
    pub(super) fn take_abandoned(&mut self, id: &RequestId) -> Option<InputRecipient> {
        self.abandoned.remove(&id.number()?)
    }

    /// Removes the request with the id of a response.
    pub(super) fn take(&mut self, id: &RequestId) -> Option<RequestEntry> {
        self.remove(id.number()?)
    }

    /// Returns the request with an id, or with a progress token, which is the same number.
    pub(super) fn get(&self, id: &RequestId) -> Option<&RequestEntry> {
        self.entries.get(&id.number()?)
    }

    /// Reports whether a request has this id.
    pub(super) fn contains(&self, id: &RequestId) -> bool {
        self.get(id).is_some()
    }

    /// Returns the only request in flight, if there is exactly one.
    pub(super) fn only_request(&self) -> Option<(u64, &RequestEntry)> {
        let mut entries = self.entries.iter();
        entries.next().filter(|_| entries.next().is_none()).map(|(id, entry)| (*id, entry))
    }

    /// Returns the only request in flight that is not a subscription, if there is exactly one.
    pub(super) fn only_call(&self) -> Option<&RequestEntry> {
        let mut calls = self.entries.values().filter(|entry| !entry.is_subscription);
        calls.next().filter(|_| calls.next().is_none())
    }

    /// Reports whether more than one request in flight is not a subscription.
    pub(super) fn has_several_calls(&self) -> bool {
        self.entries.len() - self.subscription_count > 1
    }

    /// Returns the call that an input request belongs to, and whether that is certain; `None` if it is not known.
    ///
    /// A channel does not attribute input requests to calls. If only one call can receive input requests, it is
    /// certainly that one. If several calls have the same recipient (the same caller, or the client's handler), the
    /// oldest call without an open input request is chosen (ids increase): the recipient is the same in any case.
    /// With several recipients the choice would be a guess, and an input request must never reach another caller
    /// than the one that caused it. A call that declared no capability receives the input request only if it is the
    /// only call, and refuses it, so that its caller learns which capability was missing.
    pub(super) fn attribute_request(&mut self) -> Option<(&mut RequestEntry, bool)> {
        let answering = || self.entries.values().map(|entry| entry.recipient).filter(|it| it.can_answer());
        let recipient = match answering().next() {
            Some(first) => answering().all(|other| other == first).then_some(first)?,
            None => InputRecipient::Undeclared,
        };
        let count = self.entries.values().filter(|entry| entry.recipient == recipient).count();
        if recipient == InputRecipient::Undeclared && count > 1 {
            return None;
        }
        let eligible = self.entries.iter_mut().filter(|(_, entry)| entry.recipient == recipient);
        let oldest = eligible.min_by_key(|(id, entry)| (!entry.open_requests.is_empty(), **id));
        oldest.map(|(_, entry)| (entry, count == 1))
    }

    /// Returns the call of an input request, and marks the input request as resolved.
    pub(super) fn resolve_request(&mut self, request_id: &RequestId) -> Option<&RequestEntry> {
        let entry = self.entries.values_mut().find(|entry| entry.open_requests.contains(request_id))?;
        entry.open_requests.retain(|open| open != request_id);
        Some(entry)
    }

    /// Fails all requests, and returns their number.
    pub(super) fn fail_all(&mut self, failure: &TransportFailure) -> usize {
        let Self { entries, .. } = std::mem::take(self);
        let count = entries.len();
        for entry in entries.into_values() {
            entry.slot.finish(ExchangeEvent::Failed(failure.clone()));
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::RawJson;

    use super::*;

    use InputRecipient::{Handler, None as Nothing, Undeclared};

    const FIRST_CALLER: InputRecipient = InputRecipient::Caller(1);
    const SECOND_CALLER: InputRecipient = InputRecipient::Caller(2);

    type EntrySpec<'a> = (u64, InputRecipient, &'a [&'a str]);
    type AttributionCase<'a> = (&'a [EntrySpec<'a>], Option<(u64, bool)>);

    fn table(entries: &[EntrySpec<'_>]) -> RequestTable {
        let mut table = RequestTable::default();
        for (id, recipient, open) in entries {
            let open = open.iter().map(|text| RequestId::from_text(text)).collect();
            let (slot, recipient) = (Arc::default(), *recipient);
            table.insert(
                *id,
                RequestEntry {
                    slot,
                    recipient,
                    is_cancellable: true,
                    is_subscription: false,
                    open_requests: open,
                },
            );
        }
        table
    }

    /// Returns the call that an input request is routed to, and whether that is certain.
    fn attributed_to(entries: &[EntrySpec<'_>]) -> Option<(u64, bool)> {
        let mut table = table(entries);
        let (found, is_certain) =
            table.attribute_request().map(|(entry, is_only)| (Arc::as_ptr(&entry.slot), is_only))?;
        let id = table.entries.iter().find(|(_, entry)| Arc::as_ptr(&entry.slot) == found)?.0;
        Some((*id, is_certain))
    }

    #[test]
    fn handler_input_request_goes_to_the_oldest_call_without_an_open_one() {
        let cases: &[AttributionCase<'_>] = &[
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
            assert_eq!(attributed_to(entries), *expected, "{entries:?}");
        }
    }

    #[test]
    fn input_request_goes_to_a_caller_only_if_no_other_could_have_caused_it() {
        let cases: &[AttributionCase<'_>] = &[
            (&[(1, FIRST_CALLER, &[])], Some((1, true))),
            (&[(1, Undeclared, &[]), (2, FIRST_CALLER, &[]), (3, Nothing, &[])], Some((2, true))),
            (&[(1, FIRST_CALLER, &["q"])], Some((1, true))),
            (&[(2, FIRST_CALLER, &[]), (1, FIRST_CALLER, &[])], Some((1, false))),
            (&[(1, FIRST_CALLER, &["q"]), (2, FIRST_CALLER, &[])], Some((2, false))),
            (&[(1, FIRST_CALLER, &[]), (2, SECOND_CALLER, &[])], None),
            (&[(1, FIRST_CALLER, &["q"]), (2, SECOND_CALLER, &[])], None),
            (&[(1, FIRST_CALLER, &[]), (2, FIRST_CALLER, &[]), (3, SECOND_CALLER, &[])], None),
            (&[(1, Handler, &[]), (2, FIRST_CALLER, &[])], None),
            (&[(1, Undeclared, &[]), (2, Nothing, &[])], Some((1, true))),
            (&[(1, Undeclared, &[]), (2, Undeclared, &[])], None),
        ];
        for (entries, expected) in cases {
            assert_eq!(attributed_to(entries), *expected, "{entries:?}");
        }
    }

    #[test]
    fn abandoned_request_with_input_recipient_is_tracked_until_its_response() {
        let mut table =
            table(&[(1, FIRST_CALLER, &[]), (2, Handler, &[]), (3, Undeclared, &[]), (4, Nothing, &[])]);
        for id in 1..=4 {
            assert!(table.abandon(id).is_some() && table.abandon(id).is_none(), "{id}");
        }
        let mut answered = |id: u64| table.take_abandoned(&RequestId::from_number(id));
        assert_eq!([1, 2, 3, 4, 1].map(&mut answered), [Some(FIRST_CALLER), Some(Handler), None, None, None]);
    }

    #[test]
    fn subscriptions_are_not_counted_as_calls() {
        let entry = |is_subscription| RequestEntry {
            slot: Arc::default(),
            recipient: Nothing,
            is_cancellable: true,
            is_subscription,
            open_requests: Vec::new(),
        };
        let mut table = RequestTable::default();
        for (id, is_subscription, expected) in
            [(1, true, false), (2, true, false), (3, false, false), (4, false, true), (5, true, true)]
        {
            table.insert(id, entry(is_subscription));
            assert_eq!(table.has_several_calls(), expected, "with {id}");
        }
        for (id, expected) in [(1, true), (1, true), (5, true), (3, false), (2, false), (4, false)] {
            table.remove(id);
            assert_eq!(table.has_several_calls(), expected, "without {id}");
        }
        table.insert(6, entry(true));
        assert_eq!(table.fail_all(&TransportFailure::maybe_sent("gone")), 1);
        assert!(!table.has_several_calls());
    }

    #[test]
    fn response_is_matched_by_the_exact_text_of_its_id() {
        let table = table(&[(1, FIRST_CALLER, &[]), (0, FIRST_CALLER, &[])]);
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
            let id = RawJson::parse(token).ok().and_then(RequestId::from_raw);
            assert_eq!(id.is_some_and(|id| table.contains(&id)), known, "{token}");
        }
    }
}
