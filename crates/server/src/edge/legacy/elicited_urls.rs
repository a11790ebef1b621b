use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use trunkline_protocol::model::{ElicitAction, InputRequest, InputResponse};
use trunkline_protocol::{JsonWriter, RawJson};
use trunkline_session::SessionId;

use crate::call::elicitation_complete;

/// The URL elicitations of one call.
///
/// A handler that is called again with the responses may request the same URL until the user has finished there. The
/// user agreed once, so the URL is not opened again; and the client is notified once the handler no longer requests
/// it.
///
/// See [Completion Notifications for URL Mode Elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#completion-notifications-for-url-mode-elicitation).
#[derive(Clone, Debug, Default)]
pub(super) struct ElicitedUrls(Arc<Mutex<Vec<ElicitedUrl>>>);

#[derive(Debug)]
struct ElicitedUrl {
    url: String,
    /// The id of the elicitation.
    id: String,
    is_accepted: bool,
}

impl ElicitedUrls {
    /// Records a URL that is sent to the client, and returns the id of its elicitation.
    pub(super) fn record(&self, question: &InputRequest) -> String {
        let id = SessionId::random().to_string();
        if let Some(url) = url_of(question) {
            let mut entries = self.lock();
            entries.retain(|entry| entry.url != url);
            entries.push(ElicitedUrl { url: url.to_owned(), id: id.clone(), is_accepted: false });
        }
        id
    }

    /// Removes the input requests for URLs to which the user has agreed, each with that response.
    pub(super) fn take_accepted(
        &self,
        questions: &mut Vec<(String, InputRequest)>,
    ) -> Vec<(String, RawJson)> {
        let entries = self.lock();
        let is_agreed = |url: &str| entries.iter().any(|entry| entry.is_accepted && entry.url == url);
        let agreed = questions.extract_if(.., |(_, question)| url_of(question).is_some_and(is_agreed));
        agreed.map(|(key, _)| (key, accept_response())).collect()
    }

    /// Records which of these URLs the user has agreed to.
    pub(super) fn record_responses(
        &self,
        requests: &[(String, InputRequest)],
        answers: &[(String, RawJson)],
    ) {
        let mut entries = self.lock();
        for (key, question) in requests {
            let (Some(url), Some((_, raw))) =
                (url_of(question), answers.iter().find(|(known, _)| known == key))
            else {
                continue;
            };
            let is_agreed = matches!(question.read_response(raw), Ok(InputResponse::Elicit(it)) if it.action == ElicitAction::Accept);
            entries
                .iter_mut()
                .filter(|entry| entry.url == url)
                .for_each(|entry| entry.is_accepted = is_agreed);
        }
    }

    /// Removes the URLs that are no longer requested, and returns the notifications about those that the user opened.
    pub(super) fn complete(&self, still_requested: &[(String, InputRequest)]) -> Vec<String> {
        let is_requested =
            |url: &str| still_requested.iter().any(|(_, question)| url_of(question) == Some(url));
        let mut entries = self.lock();
        let done: Vec<ElicitedUrl> = entries.extract_if(.., |entry| !is_requested(&entry.url)).collect();
        drop(entries);
        done.iter().filter(|entry| entry.is_accepted).map(|entry| elicitation_complete(&entry.id)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ElicitedUrl>> {
        self.0.lock()
    }
}

fn url_of(question: &InputRequest) -> Option<&str> {
    match question {
        InputRequest::Url(url) => Some(&url.url),
        _ => None,
    }
}

/// The response of a user that agrees to open a URL.
fn accept_response() -> RawJson {
    let mut writer = JsonWriter::with_capacity(24);
    writer.open_object();
    writer.plain_key("action");
    writer.string(ElicitAction::Accept.as_str());
    writer.close_object();
    writer.into_raw()
}
