//! Prompts: how they are described, and how a request reaches their handler.

mod entry;
mod result;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Map, Value};
use trunkline_protocol::Refusal;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::{self, PromptArgument};

pub(crate) use self::entry::{PromptEntry, read_texts};
pub use self::result::IntoPromptResult;
use crate::call::{BoxFuture, Context, HandlerOutcome};
use crate::completer::Completers;
use crate::described::described;
use crate::function::HandlerFn;
use crate::part::{Part, Parts};
use crate::{schema, text_arguments};

type PromptFn = Box<
    dyn Fn(Context, Vec<(String, String)>) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>>
        + Send
        + Sync,
>;

/// A prompt: its description, and the function that fills it in.
#[must_use = "a prompt does nothing until it is given to a server"]
pub struct Prompt {
    described: model::Prompt,
    /// The arguments that are derived from the type of the handler's arguments.
    derived: Vec<PromptArgument>,
    completers: Completers,
    get: Option<PromptFn>,
    problems: Vec<String>,
}

impl Prompt {
    /// Names a prompt.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            described: model::Prompt::new(name),
            derived: Vec::new(),
            completers: Completers::default(),
            get: None,
            problems: Vec::new(),
        }
    }

    /// Adopts the description of a prompt that is known only at run time.
    pub(crate) fn from_description(described: model::Prompt) -> Self {
        Self { described, ..Self::new("") }
    }

    /// Describes an argument; this replaces the description derived from the type of the handler's arguments.
    pub fn argument(mut self, argument: PromptArgument) -> Self {
        self.described.arguments.push(argument);
        self
    }

    /// Describes an argument that must be given.
    pub fn required(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.argument(PromptArgument {
            description: Some(description.into()),
            ..PromptArgument::required(name)
        })
    }

    /// Describes an argument that may be left out.
    pub fn optional(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.argument(PromptArgument { description: Some(description.into()), ..PromptArgument::new(name) })
    }

    /// Suggests values for an argument: an async function of what was typed so far and of the other arguments.
    pub fn complete<F, Fut>(mut self, argument: impl Into<String>, complete: F) -> Self
    where
        F: Fn(String, BTreeMap<String, String>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.problems.extend(self.completers.add(argument.into(), complete).err());
        self
    }

    /// Sets the handler: an async function with arguments that are a type made of texts, or a map of them.
    ///
    /// The fields of such a type describe the arguments. Numbers and booleans are read from their texts.
    pub fn get<Shape, F>(mut self, handler: F) -> Self
    where
        F: HandlerFn<Shape>,
        F::Arguments: JsonSchema,
        F::Output: IntoPromptResult,
    {
        self.derived = derive_arguments(&schema::input::<F::Arguments>().schema);
        let get: PromptFn = Box::new(move |context, given| match text_arguments::read(given) {
            Ok(arguments) => {
                let future = handler.invoke(context, arguments);
                Box::pin(async move {
                    let result = future.await.into_prompt_result()?;
                    Ok(HandlerOutcome::Done(ServerResult::Prompt(result)))
                })
            }
            Err(problem) => Box::pin(std::future::ready(Err(Refusal::INVALID_PARAMS.with_message(problem)))),
        });
        if self.get.replace(get).is_some() {
            self.problems.push("has two handlers".to_owned());
        }
        self
    }
}

/// Describes the arguments by the schema of their type.
fn derive_arguments(schema: &Map<String, Value>) -> Vec<PromptArgument> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let text = |property: &Value, key: &str| property.get(key).and_then(Value::as_str).map(str::to_owned);
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties
        .map(|(name, property)| PromptArgument {
            title: text(property, "title"),
            description: text(property, "description"),
            required: is_required(name).then_some(true),
            ..PromptArgument::new(name)
        })
        .collect()
}

described!(Prompt, "prompt");

impl Part for Prompt {
    fn add_to(self, parts: &mut Parts) {
        let name = self.described.name.clone();
        match PromptEntry::build(self) {
            Ok(entry) => parts.add_prompt(entry),
            Err(problems) => {
                parts.report(problems.iter().map(|problem| format!("prompt `{name}`: {problem}")));
            }
        }
    }
}
