use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::Question;

use super::ask::{Ask, AskError, Asking, Early};
use super::given::{Answered, Given, Put};
use super::shared::{Shared, UNDECLARED, wake};
use super::state::{Asked, State};

/// What a handler asks.
impl Shared {
    /// Takes the answer that came with the request, or puts the question; returns the key that it was put under.
    pub(crate) fn put(&self, key: Option<String>, question: Question, early: Early) -> Result<Put, AskError> {
        let mut state = self.lock();
        if !self.method().may_ask() {
            return Err(AskError::unsupported(&question, "this method cannot put questions"));
        }
        let key = key.unwrap_or_else(|| {
            state.unnamed += 1;
            unnamed_key(state.unnamed)
        });
        state.check_unused(&key)?;
        let given = state.answers.iter().position(|(given, _)| *given == key);
        if let Some(at) = given.filter(|_| early == Early::Counts) {
            let (key, raw) = state.answers.remove(at);
            // A malformed answer is not an error: the question is simply put again.
            if let Ok(answer) = question.read_answer(&raw) {
                if let Some(used) = &mut state.used {
                    used.push((key.clone(), raw.clone()));
                }
                return Ok(Put::Answered(Answered { key, question, given: Ok(Given { answer, raw }) }));
            }
        }
        state.open(key.clone(), question)?;
        // A handler may ask from a task of its own, whose polls the exchange does not see.
        wake(state.exchange.take(), state);
        Ok(Put::Open(key))
    }

    /// Puts a question once more whose answer was no use.
    pub(crate) fn put_again(&self, key: String, question: Question) -> Result<(), AskError> {
        let mut state = self.lock();
        if let Some(used) = &mut state.used {
            // Or the call would be given it again when it is replayed.
            used.retain(|(used, _)| *used != key);
        }
        state.open(key, question)?;
        wake(state.exchange.take(), state);
        Ok(())
    }

    /// Checks, before any of them is put, that questions which belong together can all be put.
    ///
    /// # Errors
    /// What [`Shared::put`] would say to the first that cannot.
    pub(crate) fn check_all(&self, questions: &[(Option<&str>, &Question)]) -> Result<(), AskError> {
        let state = self.lock();
        let (mut unnamed, mut keys) = (state.unnamed, Vec::with_capacity(questions.len()));
        for (key, question) in questions {
            let key = match key {
                Some(key) => (*key).to_owned(),
                None => {
                    unnamed += 1;
                    unnamed_key(unnamed)
                }
            };
            if keys.contains(&key) || state.asked.iter().any(|asked| asked.key == key) {
                return Err(AskError::KeyInUse(key));
            }
            let given = state.answers.iter().find(|(given, _)| *given == key);
            if given.is_none_or(|(_, raw)| question.read_answer(raw).is_err()) {
                state.check_supported(question)?;
            }
            keys.push(key);
        }
        Ok(())
    }

    pub(crate) fn poll_answer(
        &self,
        key: &str,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Result<Answered, AskError>> {
        let mut state = self.lock();
        let Some(at) = state.asked.iter().position(|asked| asked.key == key) else {
            return Poll::Ready(Err(AskError::Ended));
        };
        let Some(asked) = state.asked.get_mut(at) else { return Poll::Pending };
        if asked.answer.is_none() {
            asked.asker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let Asked { key, question, answer, .. } = state.asked.remove(at);
        Poll::Ready(Ok(Answered { key, question, given: answer.unwrap_or(Err(AskError::Ended)) }))
    }

    /// Puts questions whose answers are kept for the next time that the handler is called.
    ///
    /// # Errors
    /// The first that has no answer, by what it asks for.
    pub(crate) async fn collect(
        self: &Arc<Self>,
        questions: Vec<(String, Question)>,
    ) -> Result<(), (Option<&'static str>, AskError)> {
        let each: Vec<_> = questions.iter().map(|(key, question)| (Some(key.as_str()), question)).collect();
        self.check_all(&each).map_err(|error| (None, error))?;
        let mut asked: Vec<_> = questions
            .into_iter()
            .map(|(key, question)| {
                (key.clone(), question.method(), Asking::new(self.clone(), Ask::raw(key, question)))
            })
            .collect();
        let mut answers = Vec::with_capacity(asked.len());
        // Every question is polled in every turn, so that all of them are put before the round closes.
        std::future::poll_fn(|cx| {
            let mut failed = None;
            asked.retain_mut(|(key, method, asking)| match Pin::new(asking).poll(cx) {
                Poll::Pending => true,
                Poll::Ready(Ok(raw)) => {
                    answers.push((std::mem::take(key), raw));
                    false
                }
                Poll::Ready(Err(error)) => {
                    failed.get_or_insert((Some(*method), error));
                    false
                }
            });
            match failed {
                Some(error) => Poll::Ready(Err(error)),
                None if asked.is_empty() => Poll::Ready(Ok(())),
                None => Poll::Pending,
            }
        })
        .await?;
        // As in the other era, a round's answers are all that the next call of the handler is given.
        self.lock().answers = answers;
        Ok(())
    }

    pub(crate) fn has_open_questions(&self) -> bool {
        self.lock().asked.iter().any(|asked| asked.answer.is_none())
    }

    pub(crate) fn withdraw(&self, key: &str) {
        self.lock().asked.retain(|asked| asked.key != key);
    }
}

impl State {
    fn check_unused(&self, key: &str) -> Result<(), AskError> {
        match self.asked.iter().any(|asked| asked.key == key) {
            true => Err(AskError::KeyInUse(key.to_owned())),
            false => Ok(()),
        }
    }

    /// Adds a question for the exchange to put.
    fn open(&mut self, key: String, question: Question) -> Result<(), AskError> {
        self.check_unused(&key)?;
        self.check_supported(&question)?;
        let question = question.suited_to(&self.caller.capabilities(), Dialect::of(self.caller.revision));
        self.asked.push(Asked { key, question, sent: false, answer: None, asker: None });
        Ok(())
    }

    /// Checks that the caller can be asked a question, and that its revision has words for it.
    fn check_supported(&self, question: &Question) -> Result<(), AskError> {
        if !question.allowed_by(&self.caller.capabilities()) {
            return Err(AskError::unsupported(question, UNDECLARED));
        }
        question
            .check_words(Dialect::of(self.caller.revision))
            .map_err(|inexpressible| AskError::unsupported(question, inexpressible.to_string()))
    }
}

/// Names a question that is put without a name, by how many of those there were.
fn unnamed_key(number: usize) -> String {
    format!("q{number}")
}
