//! Questions of a call that stays open, asked in place.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use trunkline_client::{Answers, Meanwhile, Round};
use trunkline_protocol::Refusal;
use trunkline_protocol::model::{Action, Answer, Question, UrlQuestion};
use trunkline_server::{Ask, AskError, BoxFuture, Context};

use super::gap::Ends;
use crate::upstream::{AskingTurn, Lease};

/// How long it may take to tell a server that its questions will not be answered.
const FAREWELL: Duration = Duration::from_secs(2);

/// Puts the questions of a round to the caller, and returns the round with the answers.
///
/// The server is listened to meanwhile: it may take a question back, or be over before it is answered.
///
/// # Errors
/// The caller cannot be asked, or is gone; the server has been told.
pub(super) async fn ask(
    context: &Context,
    lease: &Lease,
    ends: &Ends,
    round: Round,
) -> Result<(Round, Answers), Refusal> {
    let mut held = Held { round: Some(round), turn: lease.turn() };
    let mut open: Vec<_> =
        held.questions().into_iter().map(|question| Open::put(context, lease, question)).collect();
    let mut answers = Answers::new();
    while !open.is_empty() {
        let answered = std::future::poll_fn(|cx| {
            let mut ready = None;
            // Each is polled in each turn, so that all are put before the round closes.
            for (at, question) in open.iter_mut().enumerate() {
                if let Poll::Ready(answer) = question.answer.as_mut().poll(cx) {
                    ready = Some((at, answer));
                    break;
                }
            }
            ready.map_or(Poll::Pending, Poll::Ready)
        });
        tokio::select! {
            biased;
            meanwhile = held.meanwhile() => match meanwhile {
                Meanwhile::Withdrawn(key) => open.retain(|question| question.key != key),
                // The answers that there are do no harm, and what the server says instead comes next.
                _ => open.clear(),
            },
            (at, answer) = answered => {
                let question = open.swap_remove(at);
                let answer = match (answer, held.question(&question.key)) {
                    (Err(AskError::Unsupported { .. }), Some(question)) => return Err(ends.unasked(question)),
                    (answer, _) => understood(answer)?,
                };
                answers.push((question.key, answer));
            }
        }
    }
    held.release().map(|round| (round, answers)).ok_or(Refusal::INTERNAL)
}

/// Asks the caller for its roots, and tells the server of them.
pub(super) async fn tell_roots(context: &Context, lease: &Lease) {
    // Who does not say which roots it has, has none for the server.
    let roots = context.roots().await.unwrap_or_default();
    lease.connection().roots.give(roots);
}

/// A question that waits for its answer.
struct Open<'a> {
    key: String,
    answer: BoxFuture<'a, Result<Answer, AskError>>,
}

impl<'a> Open<'a> {
    fn put(context: &'a Context, lease: &'a Lease, (key, question): (String, Question)) -> Self {
        let answer: BoxFuture<'a, _> = match question {
            Question::Roots if lease.asks_caller_for_roots() => Box::pin(async move {
                let roots = context.roots().await?;
                lease.told_callers_roots(context.known_roots().await.as_deref());
                Ok(Answer::Roots(roots))
            }),
            Question::Roots => Box::pin(async move {
                if let Some(roots) = lease.connection().roots.answer_in_call() {
                    return Ok(Answer::Roots(roots));
                }
                tell_roots(context, lease).await;
                Ok(Answer::Roots(lease.connection().roots.answer_in_call().unwrap_or_default()))
            }),
            Question::Url(page) => Box::pin(send_to_page(context, lease, key.clone(), page)),
            question => Box::pin(context.ask(Ask::carried(key.clone(), question))),
        };
        Self { key, answer }
    }
}

/// Asks the caller to open a page. If it does, it is told when the server says that the user is done there.
async fn send_to_page(
    context: &Context,
    lease: &Lease,
    key: String,
    page: UrlQuestion,
) -> Result<Answer, AskError> {
    let id = page.rest.text("elicitationId").map(|id| id.to_string());
    let answer = context.ask(Ask::carried(key.clone(), Question::Url(page))).await?;
    let is_agreed = matches!(&answer, Answer::Elicit(elicited) if elicited.action == Action::Accept);
    if let (true, Some(id), Some(done)) = (is_agreed, id, context.page_done(&key)) {
        lease.connection().pages.sent(&id, done);
    }
    Ok(answer)
}

/// Turns what the caller said into what the server hears.
///
/// # Errors
/// The caller cannot be asked at all, which ends the call.
fn understood(answer: Result<Answer, AskError>) -> Result<Result<Answer, Refusal>, Refusal> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(AskError::Refused(refusal)) => Ok(Err(refusal)),
        Err(AskError::Malformed(problem)) => {
            Ok(Err(Refusal::INTERNAL.because(format!("the client's answer does not fit: {problem}"))))
        }
        Err(error) => Err(error.to_refusal()),
    }
}

/// A round whose questions are open. If nobody will answer them any more, the server is told.
struct Held {
    round: Option<Round>,
    /// No other call may be asked anything over the connection before the server has these words.
    turn: Option<Arc<AskingTurn>>,
}

impl Held {
    fn questions(&self) -> Vec<(String, Question)> {
        self.round.as_ref().map(|round| round.questions.clone()).unwrap_or_default()
    }

    fn question(&self, key: &str) -> Option<&Question> {
        self.round.iter().flat_map(|round| &round.questions).find(|(known, _)| known == key).map(|(_, it)| it)
    }

    async fn meanwhile(&mut self) -> Meanwhile {
        match &mut self.round {
            Some(round) => round.meanwhile().await,
            None => std::future::pending().await,
        }
    }

    fn release(mut self) -> Option<Round> {
        self.round.take()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (Some(round), Ok(runtime)) = (self.round.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let turn = self.turn.take();
        runtime.spawn(async move {
            // The call is cancelled with or without these words.
            let _ = tokio::time::timeout(FAREWELL, Box::pin(round.abandon())).await;
            drop(turn);
        });
    }
}
