//! What clients saw, and what of it no server may do: a pure function, tested on histories with planted faults.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// A session of a client, by the number that the client gave it.
pub(crate) type SessionNumber = u32;

/// The number of a call, which is in its arguments and comes back in its question and its answer.
pub(crate) type CallNumber = u64;

/// One thing that a client did or saw. The events of one session are in the order in which it saw them; those of several may
/// be mixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HistoryEvent {
    /// The server acknowledged a new session.
    Opened(SessionNumber),
    /// The client sent its `DELETE`, so that the session may be over from here on.
    Deleting(SessionNumber),
    /// The server acknowledged the end of the session.
    Deleted(SessionNumber),
    /// A request in the session was accepted.
    Accepted(SessionNumber),
    /// A request in the session got 404.
    NotFound(SessionNumber),
    /// The client sent a call.
    Called(SessionNumber, CallNumber),
    /// The client received a question with the number of a call, and the id of the question.
    Asked(SessionNumber, CallNumber, String),
    /// The client received the response to one of its calls, with the number that was in the answer.
    Answered { session: SessionNumber, call: CallNumber, number: CallNumber },
    /// The client received an error as the response to one of its calls.
    Failed(SessionNumber, CallNumber),
    /// An event of a stream arrived; without an id it is none that the server stored.
    Received { session: SessionNumber, stream: u64, position: Option<u64> },
    /// A resumption after an event that was received was refused, because the server does not know the event.
    NotResumed(SessionNumber),
    /// The server acknowledged a subscription.
    Subscribed(SessionNumber),
    /// The resource of the subscriptions changed, while nothing failed.
    Changed,
    /// The client was notified of a change.
    Notified(SessionNumber),
    /// All notifications of the changes so far had their time.
    Settled,
}

/// Something that may not happen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HistoryFault {
    /// A call got the answer to another call.
    WrongAnswer(CallNumber),
    /// A call was answered twice.
    SecondAnswer(CallNumber),
    /// A session received the answer or the question of a call that it never made.
    ForeignMessage(SessionNumber, CallNumber),
    /// A call sent two questions, so that it ran twice.
    SecondRun(CallNumber),
    /// A session that was acknowledged is not found, though its client did not delete it.
    LostSession(SessionNumber),
    /// A session goes on after its end was acknowledged.
    DeletedSessionUsed(SessionNumber),
    /// Events of a stream are missing, came twice or in another order.
    BrokenStream { session: SessionNumber, stream: u64, after: u64, position: u64 },
    /// A stream cannot be resumed after an event that was received.
    LostEvent(SessionNumber),
    /// A subscriber was not notified of a change.
    LostSubscription(SessionNumber),
    /// A session without a subscription was notified.
    ForeignNotification(SessionNumber),
}

impl fmt::Display for HistoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongAnswer(call) => write!(f, "call {call} got the answer to another call"),
            Self::SecondAnswer(call) => write!(f, "call {call} was answered twice"),
            Self::ForeignMessage(session, call) => {
                write!(f, "session {session} received a message of call {call}, which is not its own")
            }
            Self::SecondRun(call) => write!(f, "call {call} asked two questions, so that it ran twice"),
            Self::LostSession(session) => write!(f, "session {session} is not found, and was not deleted"),
            Self::DeletedSessionUsed(session) => write!(f, "session {session} goes on after its end"),
            Self::BrokenStream { session, stream, after, position } => {
                write!(f, "stream {stream:x} of session {session} has event {position} after {after}")
            }
            Self::LostEvent(session) => write!(f, "a stream of session {session} cannot be resumed"),
            Self::LostSubscription(session) => write!(f, "session {session} was not notified of a change"),
            Self::ForeignNotification(session) => {
                write!(f, "session {session} was notified without a subscription")
            }
        }
    }
}

/// What a history shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HistoryVerdict {
    pub(crate) faults: Vec<HistoryFault>,
    /// The calls that were sent, and those that were answered.
    pub(crate) called: usize,
    pub(crate) answered: usize,
    pub(crate) asked: usize,
    pub(crate) sessions: usize,
    pub(crate) events: usize,
    pub(crate) notified: usize,
}

/// Finds everything in a history that may not happen.
pub(crate) fn check(history: &[HistoryEvent]) -> HistoryVerdict {
    let mut check = HistoryCheck::default();
    history.iter().for_each(|event| check.add(event));
    let mut faults = check.faults;
    faults.sort();
    HistoryVerdict { faults, ..check.verdict }
}

#[derive(Default)]
struct HistoryCheck {
    verdict: HistoryVerdict,
    faults: Vec<HistoryFault>,
    sessions: HashMap<SessionNumber, SessionCheck>,
    callers: HashMap<CallNumber, SessionNumber>,
    answered: HashSet<CallNumber>,
    /// The question of each call that sent one.
    questions: HashMap<CallNumber, String>,
    has_changed: bool,
}

#[derive(Default)]
struct SessionCheck {
    is_deleting: bool,
    is_deleted: bool,
    is_subscribed: bool,
    is_notified: bool,
    /// The last event of each stream; `None` if one without an id came after it.
    streams: BTreeMap<u64, Option<u64>>,
}

impl HistoryCheck {
    fn add(&mut self, event: &HistoryEvent) {
        match event {
            HistoryEvent::Opened(session) => {
                self.verdict.sessions += 1;
                self.sessions.insert(*session, SessionCheck::default());
            }
            HistoryEvent::Deleting(session) => self.session(*session).is_deleting = true,
            HistoryEvent::Deleted(session) => self.session(*session).is_deleted = true,
            HistoryEvent::Accepted(session) if self.session(*session).is_deleted => {
                self.faults.push(HistoryFault::DeletedSessionUsed(*session));
            }
            HistoryEvent::NotFound(session) if !self.session(*session).is_deleting => {
                self.faults.push(HistoryFault::LostSession(*session));
            }
            HistoryEvent::Called(session, call) => {
                self.verdict.called += 1;
                self.callers.insert(*call, *session);
            }
            HistoryEvent::Asked(session, call, id) => self.add_question(*session, *call, id),
            HistoryEvent::Answered { session, call, number } => self.add_answer(*session, *call, *number),
            HistoryEvent::Failed(session, call) => self.add_response(*session, *call),
            HistoryEvent::Received { session, stream, position } => {
                self.add_stream_event(*session, *stream, *position);
            }
            HistoryEvent::NotResumed(session) if !self.session(*session).is_deleting => {
                self.faults.push(HistoryFault::LostEvent(*session));
            }
            HistoryEvent::Accepted(_) | HistoryEvent::NotFound(_) | HistoryEvent::NotResumed(_) => {}
            HistoryEvent::Subscribed(session) => self.session(*session).is_subscribed = true,
            HistoryEvent::Changed => {
                self.has_changed = true;
                // What comes from here on counts.
                self.sessions.values_mut().for_each(|session| session.is_notified = false);
            }
            HistoryEvent::Notified(session) => self.add_notification(*session),
            HistoryEvent::Settled => self.settle(),
        }
    }

    fn session(&mut self, session: SessionNumber) -> &mut SessionCheck {
        self.sessions.entry(session).or_default()
    }

    fn add_question(&mut self, session: SessionNumber, call: CallNumber, id: &str) {
        self.verdict.asked += 1;
        if self.callers.get(&call) != Some(&session) {
            self.faults.push(HistoryFault::ForeignMessage(session, call));
        }
        let first = self.questions.entry(call).or_insert_with(|| id.to_owned());
        // A question that is replayed after a resumption keeps its id.
        if first != id {
            self.faults.push(HistoryFault::SecondRun(call));
        }
    }

    fn add_answer(&mut self, session: SessionNumber, call: CallNumber, number: CallNumber) {
        self.verdict.answered += 1;
        if number != call {
            self.faults.push(HistoryFault::WrongAnswer(call));
        }
        self.add_response(session, call);
    }

    fn add_response(&mut self, session: SessionNumber, call: CallNumber) {
        if self.callers.get(&call) != Some(&session) {
            self.faults.push(HistoryFault::ForeignMessage(session, call));
        }
        if !self.answered.insert(call) {
            self.faults.push(HistoryFault::SecondAnswer(call));
        }
    }

    fn add_stream_event(&mut self, session: SessionNumber, stream: u64, position: Option<u64>) {
        self.verdict.events += 1;
        let before = self.session(session).streams.insert(stream, position).flatten();
        // The second event of a call's stream is a note of the server to itself, which is never sent.
        let is_next = |after: u64, position: u64| position == after + 1 || (after, position) == (0, 2);
        if let (Some(after), Some(position)) = (before, position)
            && !is_next(after, position)
        {
            self.faults.push(HistoryFault::BrokenStream { session, stream, after, position });
        }
    }

    fn add_notification(&mut self, session: SessionNumber) {
        self.verdict.notified += 1;
        let checked = self.session(session);
        checked.is_notified = true;
        if !checked.is_subscribed {
            self.faults.push(HistoryFault::ForeignNotification(session));
        }
    }

    fn settle(&mut self) {
        let has_changed = std::mem::take(&mut self.has_changed);
        for (number, session) in &mut self.sessions {
            let is_notified = std::mem::take(&mut session.is_notified);
            if has_changed && session.is_subscribed && !session.is_deleting && !is_notified {
                self.faults.push(HistoryFault::LostSubscription(*number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HistoryEvent::*;
    use super::*;

    /// Two sessions that call, ask, resume, listen and end, as they should.
    fn sound() -> Vec<HistoryEvent> {
        let event = |session, position| Received { session, stream: 7, position };
        vec![
            Opened(1),
            Opened(2),
            Called(1, 10),
            Called(2, 20),
            event(1, Some(0)),
            event(2, Some(0)),
            event(1, Some(1)),
            Asked(1, 10, "q".to_owned()),
            // The connection broke, and the stream was resumed before the question.
            Accepted(1),
            Asked(1, 10, "q".to_owned()),
            event(1, Some(2)),
            Answered { session: 1, call: 10, number: 10 },
            Answered { session: 2, call: 20, number: 20 },
            Called(1, 11),
            Subscribed(1),
            Changed,
            Notified(1),
            Settled,
            // An event that could not be stored has no id, and the next one follows it.
            event(2, None),
            event(2, Some(5)),
            Deleting(2),
            NotFound(2),
            NotResumed(2),
            Deleted(2),
        ]
    }

    #[test]
    fn sound_history_has_no_faults() {
        let expected = HistoryVerdict {
            faults: Vec::new(),
            called: 3,
            answered: 2,
            asked: 2,
            sessions: 2,
            events: 6,
            notified: 1,
        };
        assert_eq!(check(&sound()), expected);
    }

    #[test]
    fn every_planted_fault_is_found() {
        use HistoryFault as Fault;
        let answered = |session, call, number| Answered { session, call, number };
        let stream = |position| Received { session: 1, stream: 7, position: Some(position) };
        let broken = |position| Fault::BrokenStream { session: 1, stream: 7, after: 2, position };
        for (planted, expected) in [
            (vec![answered(1, 11, 20)], Fault::WrongAnswer(11)),
            (vec![answered(1, 10, 10)], Fault::SecondAnswer(10)),
            (vec![Failed(1, 10)], Fault::SecondAnswer(10)),
            (vec![answered(2, 11, 11)], Fault::ForeignMessage(2, 11)),
            (vec![Asked(2, 10, "q".to_owned())], Fault::ForeignMessage(2, 10)),
            (vec![Asked(1, 10, "r".to_owned())], Fault::SecondRun(10)),
            (vec![NotFound(1)], Fault::LostSession(1)),
            (vec![Accepted(2)], Fault::DeletedSessionUsed(2)),
            (vec![stream(4)], broken(4)),
            (vec![stream(2)], broken(2)),
            (vec![NotResumed(1)], Fault::LostEvent(1)),
            (vec![Changed, Settled], Fault::LostSubscription(1)),
            (vec![Notified(2)], Fault::ForeignNotification(2)),
        ] {
            let mut history = sound();
            history.extend(planted.clone());
            assert_eq!(check(&history).faults, [expected], "{planted:?}");
        }
    }

    #[test]
    fn subscriber_is_notified_of_each_change_after_it_settled() {
        let mut history = sound();
        history.extend([Changed, Notified(1), Settled, Settled]);
        assert_eq!(check(&history).faults, []);
        history.extend([Changed, Settled]);
        assert_eq!(check(&history).faults, [HistoryFault::LostSubscription(1)]);
    }
}
