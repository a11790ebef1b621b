use std::sync::Arc;

use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::InputRequest;
use trunkline_protocol::{Era, RawJson, Refusal, RequestId, Response, emit};

use super::LiveSession;
use crate::call::{AskError, CallState};

/// The most requests to the client that one session may have open.
const MAX_OPEN_REQUESTS: usize = 256;

/// A request that was sent to the client.
pub(super) struct OpenClientRequest {
    /// The call that sent it, and the key of its input request; a request of the session itself has neither.
    requester: Option<(Arc<CallState>, String)>,
    /// The roots change that a response to `roots/list` is not older than.
    roots: Option<u64>,
}

impl OpenClientRequest {
    /// Fails the input request: there will be no response.
    pub(super) fn fail(self) {
        if let Some((shared, key)) = self.requester {
            shared.deliver_response(&key, Err(AskError::Ended));
        }
    }
}

/// Requests to the client.
impl LiveSession {
    /// Registers an input request and returns the id under which it is sent to the client.
    pub(crate) fn register_request(
        &self,
        shared: &Arc<CallState>,
        key: &str,
        is_roots: bool,
    ) -> Result<RequestId, AskError> {
        let roots = is_roots.then(|| self.state.roots.change());
        self.insert_request(OpenClientRequest { requester: Some((shared.clone(), key.to_owned())), roots })
    }

    /// Returns the `roots/list` request of the session itself, if it should be sent now.
    ///
    /// See [Root List Changes](https://modelcontextprotocol.io/specification/2025-11-25/client/roots#root-list-changes).
    pub(crate) fn request_roots(&self) -> Option<String> {
        let change = self.state.roots.begin_request()?;
        let id = self.insert_request(OpenClientRequest { requester: None, roots: Some(change) }).ok()?;
        let mut activity = self.lock();
        // Only the latest request of the session's own is waited for, however many get no response.
        if let Some(before) = activity.own_request.replace(id.clone()) {
            activity.open_requests.remove(&before);
        }
        drop(activity);
        Some(emit::request(&id, InputRequest::Roots.method(), Some(&RawJson::EMPTY_OBJECT)))
    }

    fn insert_request(&self, open: OpenClientRequest) -> Result<RequestId, AskError> {
        let mut activity = self.lock();
        if activity.ended || activity.input_closed || activity.open_requests.len() >= MAX_OPEN_REQUESTS {
            return Err(AskError::Ended);
        }
        let number = activity.next_number();
        // The response may be posted to another process, which sends it to the one that the id names.
        let id = RequestId::from_text(&match self.process() {
            Some(process) => format!("trunkline-{process}-{number:x}"),
            None => format!("trunkline-{number:x}"),
        });
        activity.open_requests.insert(id.clone(), open);
        Ok(id)
    }

    /// Reports whether a call waits for a response of the client.
    pub(crate) fn is_waiting_for_input(&self) -> bool {
        self.lock().open_requests.values().any(|open| open.requester.is_some())
    }

    /// Reports whether one of these requests has no response yet.
    pub(crate) fn has_open_requests(&self, requests: &[RequestId]) -> bool {
        let activity = self.lock();
        requests.iter().any(|id| activity.open_requests.contains_key(id))
    }

    /// Takes a request that the client need not answer any more; returns false if it has none to send.
    pub(crate) fn take_request(&self, id: &RequestId) -> bool {
        self.lock().open_requests.remove(id).is_some()
    }

    /// Fails those of these requests that have no response yet.
    pub(crate) fn fail_requests(&self, requests: &[RequestId]) {
        let open: Vec<_> = {
            let mut activity = self.lock();
            requests.iter().filter_map(|id| activity.open_requests.remove(id)).collect()
        };
        open.into_iter().for_each(OpenClientRequest::fail);
    }

    /// Fails every request that has no response yet, and each later one: the client sends no more.
    pub(crate) fn close_input(&self) {
        let requests = {
            let mut activity = self.lock();
            activity.input_closed = true;
            std::mem::take(&mut activity.open_requests)
        };
        for open in requests.into_values() {
            // Calls that wait for the roots get those that are known.
            if let Some(change) = open.roots {
                self.state.roots.store_response(change, None);
            }
            open.fail();
        }
    }

    /// Delivers a client's response to the call that waits for it; a response to no open request is dropped.
    pub(crate) fn deliver_response(&self, response: Response) {
        let open = response.id.and_then(|id| self.lock().open_requests.remove(&id));
        let Some(OpenClientRequest { requester, roots }) = open else { return };
        if let Some(change) = roots {
            self.state.roots.store_response(change, response.outcome.as_deref().ok());
        }
        if let Some((shared, key)) = requester {
            let outcome = response.outcome.map(RawResult::into_raw);
            shared.deliver_response(&key, outcome.map_err(|error| AskError::Refused(refusal(&error))));
        }
    }
}

/// Reads a client's error, with its message shortened.
fn refusal(error: &RawJson) -> Refusal {
    let members = error.members().unwrap_or_default();
    let code = members.get("code").and_then(|code| code.get().ok());
    let message = members.text("message");
    let message =
        message.map_or_else(|| "no reason given".to_owned(), |text| text.chars().take(500).collect());
    let internal = Refusal::INTERNAL.code(Era::Legacy);
    Refusal::relayed(code.unwrap_or(internal), message, members.get("data").map(RawJson::to_owned_buffer))
}
