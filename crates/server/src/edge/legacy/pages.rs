use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use trunkline_protocol::model::{Action, Answer, Question};
use trunkline_protocol::{Raw, Writer};
use trunkline_session::SessionId;

use crate::call::page_done;

/// The pages that the user of one call was sent to.
///
/// A handler that is called again with the answers may ask for the same page until the user is done there. The user agreed
/// once, so that the page is not opened again; and the client hears when nobody asks for it any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages(Arc<Mutex<Vec<Page>>>);

#[derive(Debug)]
struct Page {
    url: String,
    /// What the client knows it by.
    id: String,
    is_agreed: bool,
}

impl Pages {
    /// Notes that a page is put to the client, and returns what the client knows it by.
    pub(super) fn put(&self, question: &Question) -> String {
        let id = SessionId::random().to_string();
        if let Some(url) = url_of(question) {
            let mut pages = self.lock();
            pages.retain(|page| page.url != url);
            pages.push(Page { url: url.to_owned(), id: id.clone(), is_agreed: false });
        }
        id
    }

    /// Takes out the questions for pages to which the user has agreed, each with that answer.
    pub(super) fn take_agreed(&self, questions: &mut Vec<(String, Question)>) -> Vec<(String, Raw)> {
        let pages = self.lock();
        let is_agreed = |url: &str| pages.iter().any(|page| page.is_agreed && page.url == url);
        let agreed = questions.extract_if(.., |(_, question)| url_of(question).is_some_and(is_agreed));
        agreed.map(|(key, _)| (key, agreement())).collect()
    }

    /// Notes which of these pages the user has agreed to.
    pub(super) fn note(&self, asked: &[(String, Question)], answers: &[(String, Raw)]) {
        let mut pages = self.lock();
        for (key, question) in asked {
            let (Some(url), Some((_, raw))) =
                (url_of(question), answers.iter().find(|(known, _)| known == key))
            else {
                continue;
            };
            let is_agreed =
                matches!(question.read_answer(raw), Ok(Answer::Elicit(it)) if it.action == Action::Accept);
            pages.iter_mut().filter(|page| page.url == url).for_each(|page| page.is_agreed = is_agreed);
        }
    }

    /// Forgets the pages that nobody asks for any more, and returns what the client is told about those that it opened.
    pub(super) fn complete(&self, still_asked: &[(String, Question)]) -> Vec<String> {
        let is_asked = |url: &str| still_asked.iter().any(|(_, question)| url_of(question) == Some(url));
        let mut pages = self.lock();
        let done: Vec<Page> = pages.extract_if(.., |page| !is_asked(&page.url)).collect();
        drop(pages);
        done.iter().filter(|page| page.is_agreed).map(|page| page_done(&page.id)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Page>> {
        self.0.lock()
    }
}

fn url_of(question: &Question) -> Option<&str> {
    match question {
        Question::Url(url) => Some(&url.url),
        _ => None,
    }
}

/// The answer of somebody who agrees to visit a page.
fn agreement() -> Raw {
    let mut writer = Writer::with_capacity(24);
    writer.open_object();
    writer.plain_key("action");
    writer.string(Action::Accept.as_str());
    writer.close_object();
    writer.into_raw()
}
