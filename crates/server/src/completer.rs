use std::collections::BTreeMap;
use std::fmt;

use trunkline_protocol::Refusal;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::CompleteResult;

use crate::call::{BoxFuture, HandlerOutcome};

type CompletionFn = dyn Fn(String, BTreeMap<String, String>) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>>
    + Send
    + Sync;

/// The functions that suggest values for the arguments of one prompt or template.
#[derive(Default)]
pub(crate) struct Completers {
    by_argument: BTreeMap<String, Box<CompletionFn>>,
}

impl Completers {
    /// Adds the function for an argument; returns a problem if the argument has one already.
    pub(crate) fn add<F, Fut>(&mut self, argument: String, complete: F) -> Result<(), String>
    where
        F: Fn(String, BTreeMap<String, String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        let complete: Box<CompletionFn> = Box::new(move |value, given| {
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

    /// Suggests values for an argument, given those of others; an argument without a completer has no suggestions.
    pub(crate) fn complete(
        &self,
        argument: &str,
        value: String,
        given: BTreeMap<String, String>,
    ) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        match self.by_argument.get(argument) {
            Some(complete) => complete(value, given),
            None => Box::pin(std::future::ready(Ok(done(Vec::new())))),
        }
    }
}

fn done(mut values: Vec<String>) -> HandlerOutcome {
    let all = values.len();
    values.truncate(CompleteResult::MAX);
    let total = u64::try_from(all).ok();
    let has_more = Some(all > CompleteResult::MAX);
    HandlerOutcome::Done(ServerResult::Complete(CompleteResult {
        total,
        has_more,
        ..CompleteResult::new(values)
    }))
}

impl fmt::Debug for Completers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_argument.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use trunkline_protocol::Method;

    use super::*;
    use crate::prompt::Prompt;
    use crate::resource::ResourceTemplate;
    use crate::server::Server;
    use crate::testing::{answer, assert_refused};

    async fn echo(value: String, given: BTreeMap<String, String>) -> Vec<String> {
        vec![format!("{value} {given:?}")]
    }

    async fn many(count: String, _: BTreeMap<String, String>) -> Vec<String> {
        (0..count.parse().unwrap_or(0)).map(|n: u32| n.to_string()).collect()
    }

    fn complete(params: &Value) -> Result<Value, Refusal> {
        let prompt = Prompt::new("p").optional("a", "").optional("b", "").complete("a", echo);
        let template = ResourceTemplate::new("x:{v}", "t").complete("v", many);
        let server = Server::new("test").with((prompt.get(|| async { "" }), template.read(|| async { "" })));
        answer(&server, Method::Complete, params)
    }

    fn of_prompt(argument: &str, value: &str) -> Value {
        json!({
            "ref": { "type": "ref/prompt", "name": "p" },
            "argument": { "name": argument, "value": value },
        })
    }

    fn of_template(uri: &str, value: &str) -> Value {
        json!({
            "ref": { "type": "ref/resource", "uri": uri },
            "argument": { "name": "v", "value": value },
        })
    }

    #[test]
    fn completion_uses_the_typed_value_and_the_other_arguments() {
        let values = |params: &Value| complete(params).unwrap()["completion"]["values"].clone();
        assert_eq!(values(&of_prompt("a", "x")), json!(["x {}"]));
        assert_eq!(values(&of_prompt("b", "x")), json!([]));
        let mut params = of_prompt("a", "");
        params["context"] = json!({ "arguments": { "b": "1" } });
        assert_eq!(values(&params), json!([" {\"b\": \"1\"}"]));
        params["context"] = json!({});
        assert_eq!(values(&params), json!([" {}"]));
        assert_eq!(values(&of_template("x:{v}", "2")), json!(["0", "1"]));
    }

    #[test]
    fn completion_returns_at_most_a_hundred_values() {
        for (all, given, more) in [(0, 0, false), (100, 100, false), (101, 100, true), (5_000, 100, true)] {
            let completion = complete(&of_template("x:{v}", &all.to_string())).unwrap()["completion"].take();
            assert_eq!(completion["values"].as_array().unwrap().len(), given);
            assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(all), &json!(more)), "{all}");
        }
    }

    #[test]
    fn malformed_or_unknown_completion_references_are_refused() {
        let with = |key: &str, value: Value| {
            let mut params = of_prompt("a", "");
            params[key] = value;
            params
        };
        for (params, message) in [
            (json!({}), "`ref` must be an object"),
            (with("argument", json!("a")), "`argument` must be an object"),
            (with("argument", json!({ "name": "a" })), "`argument.value` must be a string"),
            (with("argument", json!({ "name": 1, "value": "" })), "`argument.name` must be a string"),
            (with("ref", json!({ "type": "ref/prompt", "name": "q" })), "Unknown prompt: q"),
            (with("ref", json!({ "type": "ref/prompt" })), "`ref.name` must be a string"),
            (with("ref", json!({ "type": "ref/tool", "name": "p" })), "`ref.type` has no meaning: ref/tool"),
            (of_template("y:{v}", ""), "Unknown resource template: y:{v}"),
            (with("context", json!([])), "`context` must be an object"),
            (with("context", json!({ "arguments": { "b": 1 } })), "the argument `b` must be a string"),
        ] {
            assert_refused(complete(&params), &Refusal::INVALID_PARAMS, message);
        }
    }
}
