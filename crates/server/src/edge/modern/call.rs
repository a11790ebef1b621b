use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use bytes::Bytes;
use trunkline_protocol::codec::{InputRequired, Reply};
use trunkline_protocol::model::Question;
use trunkline_protocol::{Id, Method, Raw, Refusal, Revision, Writer};
use trunkline_session::Principal;

use super::super::{Answer, Event, Exchange};
use super::refuse;
use crate::call::{Call, Continuation, Outcome, Running, Shared, Step};
use crate::core::{Core, InFlight, now};
use crate::metrics::Ended;
use crate::round::{Binding, Then, digest};
use crate::unanswered::Reserved;

/// A modern call in progress.
pub(crate) struct ModernCall {
    id: Id,
    method: Method,
    principal: Principal,
    round: u32,
    running: Option<Running>,
    in_flight: InFlight,
}

impl ModernCall {
    pub(super) fn new(in_flight: InFlight, id: Id, method: Method, principal: Principal) -> Self {
        Self { id, method, principal, round: 0, running: None, in_flight }
    }

    pub(super) fn start(&mut self, call: Call) {
        self.running = Some(Running::start(&*self.core().handler, call));
    }

    pub(super) fn carry(&mut self, running: Running) {
        self.running = Some(running);
    }

    pub(super) fn set_round(&mut self, round: u32) {
        self.round = round;
    }

    /// Refuses the request before anything of it runs.
    pub(super) fn refuse(&mut self, refusal: &Refusal) -> Answer {
        self.in_flight.end(Ended::Refused);
        refuse(Some(&self.id), refusal)
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        self.in_flight.core()
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    pub(crate) fn id(&self) -> &Id {
        &self.id
    }

    /// Returns what the call can be cancelled by; its next event is then [`Event::Nothing`].
    pub(crate) fn shared(&self) -> Option<Arc<Shared>> {
        self.running.as_ref().map(|running| running.shared().clone())
    }

    /// Keeps the room of a large request while the call runs or waits.
    pub(super) fn keep(&self, reserved: Reserved) {
        if let Some(running) = &self.running {
            running.shared().keep(reserved);
        }
    }

    /// Polls for what the carrier must do next.
    pub(crate) fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<Event> {
        self.poll_scrubbed(cx)
    }

    fn finish(&self, outcome: Result<Outcome, Refusal>) -> Answer {
        match (outcome, &self.running) {
            (Ok(Outcome::Done(reply)), _) => self.reply(&reply),
            (Ok(Outcome::Ask(round)), Some(running)) => {
                let shared = running.shared();
                if let Some(error) = shared.first_unsupported(&round.questions) {
                    return refuse(Some(&self.id), &error.to_refusal());
                }
                let Continuation::Portable(bytes) = round.then;
                self.ask_again(shared.suited(round.questions), self.portable(bytes), shared)
            }
            (Ok(Outcome::Ask(_)), None) => refuse(Some(&self.id), &Refusal::INTERNAL),
            (Err(refusal), _) => refuse(Some(&self.id), &refusal).of_handler(&refusal),
        }
    }

    fn reply(&self, reply: &Reply) -> Answer {
        Answer { message: self.core().result(&self.id, reply, Revision::NEWEST), status: 200 }
    }

    /// Ends the request with questions; the call itself waits for the next request.
    fn close_round(&mut self, questions: Vec<(String, Question)>) -> Answer {
        let Some(running) = self.running.take() else { return refuse(Some(&self.id), &Refusal::INTERNAL) };
        let shared = running.shared().clone();
        let then = match shared.kept_answers() {
            Some(answers) => self.portable(replay(&answers)),
            None => self.core().lot.park(&self.principal, self.round + 1, running).map(Then::Parked),
        };
        self.ask_again(questions, then, &shared)
    }

    fn portable(&self, bytes: Bytes) -> Option<Then> {
        if bytes.len() <= self.core().limits.state_bytes {
            return Some(Then::Portable(bytes));
        }
        self.core().lot.park_bytes(&self.principal, self.round + 1, bytes).map(Then::Parked)
    }

    fn ask_again(&self, questions: Vec<(String, Question)>, then: Option<Then>, shared: &Shared) -> Answer {
        let binding = Binding {
            principal: self.principal.clone(),
            method: self.method,
            digest: digest(shared.params()),
        };
        let expires = now().plus(self.core().limits.parked_for);
        let state = then.and_then(|then| self.core().sealer.seal(&binding, self.round + 1, expires, &then));
        match state {
            Some(state) => self.reply(&Reply::InputRequired(InputRequired { questions, state: Some(state) })),
            None => refuse(Some(&self.id), &Refusal::INTERNAL),
        }
    }
}

impl Exchange for ModernCall {
    fn core(&self) -> &Core {
        self.in_flight.core()
    }

    fn running(&self) -> Option<&Running> {
        self.running.as_ref()
    }

    fn poll_unscrubbed(&mut self, cx: &mut TaskContext<'_>) -> Poll<Event> {
        loop {
            let Some(running) = &mut self.running else { return Poll::Ready(Event::Nothing) };
            let step = ready!(running.poll_step(cx));
            return Poll::Ready(match step {
                Step::Note(note) => match running.render(&note) {
                    Some(message) => Event::Message(message),
                    None => continue,
                },
                // There is no polling of streams in this era.
                Step::Release(_) => continue,
                Step::Cancelled => {
                    self.running = None;
                    Event::Nothing
                }
                Step::Ask(questions) => {
                    self.in_flight.end(Ended::Asked);
                    Event::Answer(self.close_round(questions))
                }
                Step::Done(outcome) => {
                    self.in_flight.end(Ended::of(&outcome));
                    let answer = self.finish(outcome);
                    self.running = None;
                    Event::Answer(answer)
                }
            });
        }
    }
}

/// Writes the answers that a replayed call is given when it starts again.
fn replay(answers: &[(String, Raw)]) -> Bytes {
    let mut writer = Writer::with_capacity(64);
    writer.open_array();
    for (key, answer) in answers {
        writer.open_array();
        writer.string(key);
        writer.raw(answer);
        writer.close_array();
    }
    writer.close_array();
    writer.into_string().into()
}
