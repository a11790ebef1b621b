//! Input requests that legacy clients were sent, for an operator who may answer in the place of one.
//!
//! A legacy client is sent an input request while its call stays open, so that another may answer it first; a modern client
//! gets it as the result of its call, which is over then.
//!
//! # Invariants
//!
//! - Each input request is answered once, and a client that did not answer it is notified:
//!   `first_answer_counts_and_the_client_is_notified_of_the_operators`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use trunkline_protocol::model::InputRequest;
use trunkline_protocol::{Method, RawJson, RequestId};

use crate::call::CallState;
use crate::edge::legacy::LiveSession;
use crate::host::Host;
use crate::wire_tap::{ObservedClient, observed_caller};

/// An input request that a legacy client was sent and has not answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnansweredInput {
    /// Its number, unique on this host.
    pub number: u64,
    /// The number of its call for an observer of the wire, if one was attached when the call began.
    pub call: Option<NonZeroU64>,
    /// The client.
    pub client: ObservedClient,
    /// The method of the call.
    pub method: Method,
    /// The tool or prompt that was called.
    pub name: Option<String>,
    /// The input request.
    pub request: InputRequest,
}

impl UnansweredInput {
    /// Reports whether an operator may answer it: the URL of another is for that user alone, and roots are a fact of
    /// the client.
    pub fn is_answerable(&self) -> bool {
        is_answerable(&self.request)
    }
}

/// Why an operator's answer was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorAnswerError {
    /// It was answered before, or its call has ended.
    #[error("the question is no longer open")]
    Gone,
    /// Only the client can answer it.
    #[error("only the client can answer this question")]
    ClientOnly,
    /// The answer does not fit; the input request stays open.
    #[error("the answer does not fit the question: {0}")]
    Malformed(String),
}

/// The input requests of the running legacy calls.
#[derive(Default)]
pub(crate) struct OpenInputRequests(Mutex<NumberedRequests>);

#[derive(Default)]
struct NumberedRequests {
    last: u64,
    entries: BTreeMap<u64, OpenEntry>,
}

/// One that was sent; it is open as long as its session has it.
#[derive(Clone)]
struct OpenEntry {
    session: Weak<LiveSession>,
    id: RequestId,
    call: Weak<CallState>,
    key: String,
}

/// The input requests of one call, which are forgotten when it is dropped.
pub(crate) struct ListedRequests {
    registry: Arc<OpenInputRequests>,
    numbers: Vec<(u64, RequestId)>,
}

impl ListedRequests {
    pub(crate) fn new(registry: Arc<OpenInputRequests>) -> Self {
        Self { registry, numbers: Vec::new() }
    }

    /// Adds an input request that is being sent.
    pub(crate) fn add(
        &mut self,
        session: &Arc<LiveSession>,
        id: &RequestId,
        call: &Arc<CallState>,
        key: &str,
    ) {
        // Answered ones are forgotten before the list grows, so that a call of any length has as many as are open.
        if self.numbers.len() == self.numbers.capacity() {
            self.forget_answered(session);
        }
        let entry = OpenEntry {
            session: Arc::downgrade(session),
            id: id.clone(),
            call: Arc::downgrade(call),
            key: key.to_owned(),
        };
        let mut registry = self.registry.0.lock();
        registry.last += 1;
        let number = registry.last;
        registry.entries.insert(number, entry);
        self.numbers.push((number, id.clone()));
    }

    fn forget_answered(&mut self, session: &LiveSession) {
        let is_open = |(_, id): &(u64, RequestId)| session.has_open_requests(std::slice::from_ref(id));
        let (open, answered): (Vec<_>, Vec<_>) = self.numbers.drain(..).partition(is_open);
        self.numbers.extend(open);
        let mut registry = self.registry.0.lock();
        for (number, _) in answered {
            registry.entries.remove(&number);
        }
    }
}

impl Drop for ListedRequests {
    fn drop(&mut self) {
        let mut registry = self.registry.0.lock();
        for (number, _) in &self.numbers {
            registry.entries.remove(number);
        }
    }
}

impl OpenEntry {
    /// Returns its session, call and content while it is open.
    fn open(&self) -> Option<(Arc<LiveSession>, Arc<CallState>, InputRequest)> {
        let (session, call) = (self.session.upgrade()?, self.call.upgrade()?);
        let request = call.open_request_of(&self.key)?;
        session.has_open_requests(std::slice::from_ref(&self.id)).then_some((session, call, request))
    }
}

impl Host {
    /// Returns up to `most` input requests that legacy clients were sent and have not answered, the oldest first.
    pub fn open_input_requests(&self, most: usize) -> Vec<UnansweredInput> {
        let entries = self.core().open_input.0.lock().entries.clone();
        let open = entries.into_iter().filter_map(|(number, entry)| {
            let (_, call, request) = entry.open()?;
            Some(UnansweredInput {
                number,
                call: call.number(),
                client: observed_caller(&call),
                method: call.method(),
                name: call.params().get("name").and_then(|name| Some(name.as_text()?.into_owned())),
                request,
            })
        });
        open.take(most).collect()
    }

    /// Answers an input request in the place of its client, which is sent `notifications/cancelled` for it. The first
    /// answer counts.
    ///
    /// # Errors
    /// [`OperatorAnswerError`]: it is no longer open, only the client can answer it, or the answer does not fit.
    pub fn answer_input_request(&self, number: u64, response: RawJson) -> Result<(), OperatorAnswerError> {
        let entry = self.core().open_input.0.lock().entries.get(&number).cloned();
        let entry = entry.ok_or(OperatorAnswerError::Gone)?;
        let (session, call, request) = entry.open().ok_or(OperatorAnswerError::Gone)?;
        if !is_answerable(&request) {
            return Err(OperatorAnswerError::ClientOnly);
        }
        let malformed = |bad: &dyn std::fmt::Display| OperatorAnswerError::Malformed(bad.to_string());
        request.read_response(&response).map_err(|bad| malformed(&bad))?;
        if !session.take_request(&entry.id) {
            return Err(OperatorAnswerError::Gone);
        }
        call.answer_by_operator(&entry.key, entry.id, response);
        Ok(())
    }
}

fn is_answerable(request: &InputRequest) -> bool {
    matches!(request, InputRequest::Form(_) | InputRequest::Sampling(_))
}
