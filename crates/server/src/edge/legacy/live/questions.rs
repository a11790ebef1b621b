use std::sync::Arc;

use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::Question;
use trunkline_protocol::{Era, Id, Raw, Refusal, Response, emit};

use super::LiveSession;
use crate::call::{AskError, Shared};

/// The most questions that one session may have open.
const MOST_QUESTIONS: usize = 256;

/// A question that was put to the client.
pub(super) struct Open {
    /// The call that asked, and the key of its question; the session itself has neither.
    asker: Option<(Arc<Shared>, String)>,
    /// The change that an answer to a question for roots is not older than.
    roots: Option<u64>,
}

impl Open {
    /// Tells whoever asked that there will be no answer.
    pub(super) fn give_up(self) {
        if let Some((shared, key)) = self.asker {
            shared.answer(&key, Err(AskError::Ended));
        }
    }
}

/// What the client is asked.
impl LiveSession {
    /// Registers a question and returns the id under which it is put to the client.
    pub(crate) fn put(&self, shared: &Arc<Shared>, key: &str, is_roots: bool) -> Result<Id, AskError> {
        let roots = is_roots.then(|| self.keep.roots.change());
        self.register(Open { asker: Some((shared.clone(), key.to_owned())), roots })
    }

    /// Returns the request by which the session itself asks for its client's roots, if it should do so now.
    pub(crate) fn ask_roots(&self) -> Option<String> {
        let change = self.keep.roots.begin()?;
        let id = self.register(Open { asker: None, roots: Some(change) }).ok()?;
        let mut desk = self.lock();
        // Only the latest question of the session's own is waited for, however many go unanswered.
        if let Some(before) = desk.own_question.replace(id.clone()) {
            desk.questions.remove(&before);
        }
        drop(desk);
        Some(emit::request(&id, Question::Roots.method(), Some(&Raw::EMPTY_OBJECT)))
    }

    fn register(&self, open: Open) -> Result<Id, AskError> {
        let mut desk = self.lock();
        if desk.ended || desk.is_mute || desk.questions.len() >= MOST_QUESTIONS {
            return Err(AskError::Ended);
        }
        let id = Id::from_text(&format!("trunkline-{:x}", desk.next_number()));
        desk.questions.insert(id.clone(), open);
        Ok(id)
    }

    /// Reports whether a call waits for an answer of the client.
    pub(crate) fn is_asking(&self) -> bool {
        self.lock().questions.values().any(|open| open.asker.is_some())
    }

    /// Reports whether one of these questions has no answer yet.
    pub(crate) fn awaits(&self, questions: &[Id]) -> bool {
        let desk = self.lock();
        questions.iter().any(|id| desk.questions.contains_key(id))
    }

    /// Fails those of these questions that have no answer yet.
    pub(crate) fn abandon(&self, questions: &[Id]) {
        let open: Vec<_> = {
            let mut desk = self.lock();
            questions.iter().filter_map(|id| desk.questions.remove(id)).collect()
        };
        open.into_iter().for_each(Open::give_up);
    }

    /// Fails every question that has no answer yet, and each that is put from now on: the client sends no more.
    pub(crate) fn ask_no_more(&self) {
        let questions = {
            let mut desk = self.lock();
            desk.is_mute = true;
            std::mem::take(&mut desk.questions)
        };
        for open in questions.into_values() {
            // Calls that wait for the roots have those that are known.
            if let Some(change) = open.roots {
                self.keep.roots.learn(change, None);
            }
            open.give_up();
        }
    }

    /// Hands a client's response to the call that asked; one that nobody waits for is dropped.
    pub(crate) fn answer(&self, response: Response) {
        let open = response.id.and_then(|id| self.lock().questions.remove(&id));
        let Some(Open { asker, roots }) = open else { return };
        if let Some(change) = roots {
            self.keep.roots.learn(change, response.outcome.as_deref().ok());
        }
        if let Some((shared, key)) = asker {
            let outcome = response.outcome.map(RawResult::into_raw);
            shared.answer(&key, outcome.map_err(|error| AskError::Refused(refusal(&error))));
        }
    }
}

/// Reads a client's error, with no more of its sentence than anybody needs.
fn refusal(error: &Raw) -> Refusal {
    let members = error.members().unwrap_or_default();
    let code = members.get("code").and_then(|code| code.get().ok());
    let message = members.text("message");
    let message =
        message.map_or_else(|| "no reason given".to_owned(), |text| text.chars().take(500).collect());
    let internal = Refusal::INTERNAL.code(Era::Legacy);
    Refusal::carried(code.unwrap_or(internal), message, members.get("data").map(Raw::detached))
}
