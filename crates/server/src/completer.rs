use std::collections::BTreeMap;
use std::fmt;

use trunkline_protocol::Refusal;
use trunkline_protocol::codec::Reply;
use trunkline_protocol::model::CompleteResult;

use crate::call::{BoxFuture, Outcome};

type Complete =
    dyn Fn(String, BTreeMap<String, String>) -> BoxFuture<'static, Result<Outcome, Refusal>> + Send + Sync;

/// The functions that suggest values for the arguments of one prompt or template.
#[derive(Default)]
pub(crate) struct Completers {
    by_argument: BTreeMap<String, Box<Complete>>,
}

impl Completers {
    /// Adds the function for an argument; returns a problem if the argument has one already.
    pub(crate) fn add<F, Fut>(&mut self, argument: String, complete: F) -> Result<(), String>
    where
        F: Fn(String, BTreeMap<String, String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        let complete: Box<Complete> = Box::new(move |value, given| {
            let values = complete(value, given);
            Box::pin(async move { Ok(done(values.await)) })
        });
        let problem = format!("completes `{argument}` twice");
        self.by_argument.insert(argument, complete).map_or(Ok(()), |_| Err(problem))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_argument.is_empty()
    }

    /// Reports the arguments that are completed and do not exist.
    pub(crate) fn unknown(&self, exists: impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
        let unknown = self.by_argument.keys().filter(move |argument| !exists(argument));
        unknown.map(|argument| format!("completes `{argument}`, which it does not have"))
    }

    /// Suggests values for an argument, given those of others; an argument that nobody completes has no suggestions.
    pub(crate) fn complete(
        &self,
        argument: &str,
        value: String,
        given: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Result<Outcome, Refusal>> {
        match self.by_argument.get(argument) {
            Some(complete) => complete(value, given),
            None => Box::pin(std::future::ready(Ok(done(Vec::new())))),
        }
    }
}

fn done(mut values: Vec<String>) -> Outcome {
    let all = values.len();
    values.truncate(CompleteResult::MAX);
    let total = u64::try_from(all).ok();
    let has_more = Some(all > CompleteResult::MAX);
    Outcome::Done(Reply::Complete(CompleteResult { total, has_more, ..CompleteResult::new(values) }))
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_argument.keys()).finish()
    }
}
