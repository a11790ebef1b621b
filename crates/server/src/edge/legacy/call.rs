use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use trunkline_protocol::codec::{Dialect, Reply};
use trunkline_protocol::model::{CallToolResult, Question};
use trunkline_protocol::{Id, Method, Refusal, Revision, emit};

use super::super::{Answer, Event, Exchange, id_in_use};
use super::live::LiveSession;
use super::pages::Pages;
use super::refuse;
use crate::call::{AskError, Call, Context, Continuation, Outcome, Round, Running, Step};
use crate::core::{Core, InFlight};
use crate::metrics::Ended;
use crate::unanswered::Reserved;

/// How long a handler that wants to be called again, and asks nothing, is left alone.
const CALL_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A legacy call in progress.
pub(crate) struct LegacyCall {
    session: Arc<LiveSession>,
    id: Id,
    method: Method,
    running: Option<Running>,
    /// Whether the session knows of the call; it is told when the call does not end with the first thing that it does.
    entered: bool,
    /// Made with the first question: most calls only answer.
    asking: Option<Box<Asking>>,
    in_flight: InFlight,
}

/// What a call asks its client.
#[derive(Default)]
struct Asking {
    outgoing: VecDeque<String>,
    questions: Vec<Id>,
    /// Made with the first page that is asked for.
    pages: Option<Pages>,
    /// How the call ended, while there is still something to be said before that.
    ended: Option<Result<Outcome, Refusal>>,
}

impl LegacyCall {
    pub(super) fn start(
        session: Arc<LiveSession>,
        in_flight: InFlight,
        id: Id,
        method: Method,
        running: Running,
    ) -> Box<Self> {
        Box::new(Self {
            session,
            id,
            method,
            running: Some(running),
            entered: false,
            asking: None,
            in_flight,
        })
    }

    pub(super) fn id(&self) -> &Id {
        &self.id
    }

    /// Keeps the room of a large request while the call runs.
    pub(super) fn keep(&self, reserved: Reserved) {
        if let Some(running) = &self.running {
            running.shared().keep(reserved);
        }
    }

    /// Polls for what the carrier must do next.
    pub(super) fn poll_event(&mut self, cx: &mut TaskContext<'_>) -> Poll<Event> {
        self.poll_scrubbed(cx)
    }

    pub(super) fn is_asking(&self) -> bool {
        self.session.awaits(self.questions())
    }

    pub(super) fn abandon_questions(&self) {
        self.session.abandon(self.questions());
    }

    fn questions(&self) -> &[Id] {
        self.asking.as_ref().map_or(&[], |asking| &asking.questions)
    }

    /// Makes the call known to the session; returns false if another has its id.
    ///
    /// Two requests with one id may come at the same time, on two connections. Most calls end with their first step, and for
    /// these it makes no difference: each was answered on its own connection, as if they had come one after the other. Of
    /// those that go on, the first to get here has the id, and the other ends before its second step. So nothing has to be
    /// noted, and no lock taken, for the many that end at once.
    fn enter(&mut self) -> bool {
        if let (false, Some(running)) = (self.entered, &self.running) {
            self.entered = self.session.enter(&self.id, running.shared());
            return self.entered;
        }
        true
    }

    /// Turns questions into requests to the client; one that its revision cannot express fails at once.
    fn put(&mut self, questions: Vec<(String, Question)>) {
        let Some(running) = &self.running else { return };
        let asking = self.asking.get_or_insert_default();
        let dialect = Dialect::of(self.session.revision());
        for (key, question) in questions {
            let page = || {
                let id = asking.pages.get_or_insert_default().put(&question);
                running.shared().note_page(&key, &id);
                id
            };
            let params = question
                .to_legacy(dialect, page)
                .map_err(|inexpressible| AskError::unsupported(&question, inexpressible.to_string()));
            let is_roots = matches!(question, Question::Roots);
            let put =
                params.and_then(|params| Ok((self.session.put(running.shared(), &key, is_roots)?, params)));
            match put {
                Ok((id, params)) => {
                    asking.outgoing.push_back(emit::request(&id, question.method(), Some(&params)));
                    asking.questions.push(id);
                }
                Err(error) => {
                    running.shared().answer(&key, Err(error));
                }
            }
        }
    }

    /// Goes on after a handler returned questions together with bytes to be called again with.
    fn ask_and_call_again(&mut self, round: Round) {
        let Some(running) = self.running.take() else { return };
        let shared = running.shared().clone();
        let Continuation::Portable(bytes) = round.then;
        let (handler, method) = (self.in_flight.core().handler.clone(), self.method);
        let context = Context::new(shared.clone());
        let mut questions = round.questions;
        let has_pages = questions.iter().any(|(_, question)| matches!(question, Question::Url(_)));
        let pages =
            has_pages.then(|| self.asking.get_or_insert_default().pages.get_or_insert_default().clone());
        let agreed = pages.as_ref().map(|pages| pages.take_agreed(&mut questions)).unwrap_or_default();
        let again = async move {
            if questions.is_empty() {
                tokio::time::sleep(CALL_AGAIN_AFTER).await;
            }
            let asked = pages.as_ref().map(|_| questions.clone()).unwrap_or_default();
            if let Err((asked, error)) = context.shared().collect(questions).await {
                return refused_question(method, asked, &error);
            }
            if let Some(pages) = pages {
                pages.note(&asked, &context.shared().answers());
                context.shared().offer_kept_answers(agreed);
            }
            handler.call(Call { method, continuation: Some(bytes), context }).await
        };
        self.running = Some(Running::from_future(shared, Box::pin(again)));
    }

    /// Tells the client of pages that nobody asks for any more.
    fn complete_pages(&mut self, still_asked: &[(String, Question)]) {
        if let Some(asking) = &mut self.asking
            && let Some(pages) = &asking.pages
        {
            asking.outgoing.extend(pages.complete(still_asked));
        }
    }

    fn finish(&mut self, outcome: Result<Outcome, Refusal>) -> Answer {
        self.running = None;
        let outcome = legible(outcome, self.method, self.session.revision());
        self.in_flight.end(Ended::of(&outcome));
        let revision = self.session.revision();
        match outcome {
            Ok(Outcome::Done(reply)) => {
                Answer { message: self.in_flight.core().result(&self.id, &reply, revision), status: 200 }
            }
            Ok(Outcome::Ask(_)) => self.refuse(&Refusal::INTERNAL),
            Err(refusal) => self.refuse(&refusal).of_handler(&refusal),
        }
    }

    fn refuse_id(&mut self) -> Answer {
        self.running = None;
        self.in_flight.end(Ended::Refused);
        self.refuse(&id_in_use())
    }

    /// Renders a refusal as the answer.
    pub(super) fn refuse(&self, refusal: &Refusal) -> Answer {
        refuse(Some(&self.id), refusal, self.session.revision())
    }
}

impl Exchange for LegacyCall {
    fn core(&self) -> &Core {
        self.in_flight.core()
    }

    fn running(&self) -> Option<&Running> {
        self.running.as_ref()
    }

    fn poll_unscrubbed(&mut self, cx: &mut TaskContext<'_>) -> Poll<Event> {
        loop {
            if let Some(asking) = &mut self.asking {
                if let Some(message) = asking.outgoing.pop_front() {
                    return Poll::Ready(Event::Message(message));
                }
                if let Some(outcome) = asking.ended.take() {
                    return Poll::Ready(Event::Answer(self.finish(outcome)));
                }
            }
            let Some(running) = &mut self.running else { return Poll::Ready(Event::Nothing) };
            let step = running.poll_step(cx);
            if goes_on(&step) && !self.enter() {
                return Poll::Ready(Event::Answer(self.refuse_id()));
            }
            match ready!(step) {
                Step::Note(note) => match self.running.as_ref().and_then(|running| running.render(&note)) {
                    Some(message) => return Poll::Ready(Event::Message(message)),
                    None => continue,
                },
                Step::Release(retry) if self.session.revision().primes_streams() => {
                    return Poll::Ready(Event::Release(retry));
                }
                Step::Release(_) => continue,
                Step::Ask(questions) => self.put(questions),
                Step::Done(Ok(Outcome::Ask(round))) => {
                    self.complete_pages(&round.questions);
                    self.ask_and_call_again(round);
                }
                Step::Done(outcome) => {
                    self.complete_pages(&[]);
                    match &mut self.asking {
                        Some(asking) if !asking.outgoing.is_empty() => asking.ended = Some(outcome),
                        _ => return Poll::Ready(Event::Answer(self.finish(outcome))),
                    }
                }
                Step::Cancelled => {
                    self.running = None;
                    return Poll::Ready(Event::Nothing);
                }
            }
        }
    }
}

/// Reports whether a call goes on after a step, perhaps without ever having to wait.
fn goes_on(step: &Poll<Step>) -> bool {
    !matches!(step, Poll::Ready(Step::Done(Ok(Outcome::Done(_)) | Err(_)) | Step::Cancelled))
}

/// Ends a call whose question was not answered: a model that called a tool should read which, and why.
fn refused_question(method: Method, asked: Option<&str>, error: &AskError) -> Result<Outcome, Refusal> {
    let problem = match asked {
        Some(asked) => format!("a question for {asked} was not answered: {error}"),
        None => error.to_string(),
    };
    match (method, error) {
        (_, AskError::Unsupported { .. }) => Err(error.to_refusal()),
        (Method::ToolsCall, _) => Ok(Outcome::Done(Reply::Tool(CallToolResult::error(problem)))),
        _ => Err(error.to_refusal().because(problem)),
    }
}

/// Makes the result of a tool of a refusal for which the revision has no code.
fn legible(
    outcome: Result<Outcome, Refusal>,
    method: Method,
    revision: Revision,
) -> Result<Outcome, Refusal> {
    match outcome {
        Err(refusal) if method == Method::ToolsCall => match refusal.as_tool_result(revision) {
            Some(result) => Ok(Outcome::Done(Reply::Tool(result))),
            None => Err(refusal),
        },
        outcome => outcome,
    }
}

impl Drop for LegacyCall {
    fn drop(&mut self) {
        if self.entered {
            self.session.leave(&self.id, self.questions());
        }
    }
}
