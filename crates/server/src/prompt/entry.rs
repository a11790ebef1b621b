use std::fmt;

use trunkline_protocol::json::JsonKind;
use trunkline_protocol::model;
use trunkline_protocol::{RawJson, Refusal, Revision};

use super::{Prompt, PromptFn};
use crate::call::{BoxFuture, HandlerOutcome, IncomingCall};
use crate::completer::Completers;
use crate::part::check_name;
use crate::registry::RenderedItem;
use trunkline_protocol::shorten;

/// A prompt that is ready to be filled in.
pub(crate) struct PromptEntry {
    described: model::Prompt,
    rendered: RenderedItem,
    completers: Completers,
    get: PromptFn,
}

impl PromptEntry {
    pub(super) fn build(prompt: Prompt) -> Result<Self, Vec<String>> {
        let mut problems = prompt.problems;
        let mut described = prompt.described;
        problems.extend(check_name(&described.name).err());
        for argument in prompt.derived {
            if !described.arguments.iter().any(|given| given.name == argument.name) {
                described.arguments.push(argument);
            }
        }
        let mut names = std::collections::BTreeSet::new();
        for argument in &described.arguments {
            if !names.insert(argument.name.as_str()) {
                problems.push(format!("describes `{}` twice", argument.name));
            }
        }
        // A handler that takes a map has only the arguments that are described, so this holds for it too.
        problems.extend(prompt.completers.unknown(|argument| names.contains(argument)));
        match prompt.get {
            Some(get) if problems.is_empty() => {
                Ok(Self { described, rendered: RenderedItem::default(), completers: prompt.completers, get })
            }
            get => {
                problems.extend(get.is_none().then(|| "has no handler".to_owned()));
                Err(problems)
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.described.name
    }

    pub(crate) fn list_item(&self, revision: Revision) -> RawJson {
        self.rendered.get(revision, |dialect, writer| self.described.write(dialect, writer))
    }

    pub(crate) fn completers(&self) -> &Completers {
        &self.completers
    }

    /// Fills the prompt in.
    pub(crate) fn get(&self, call: IncomingCall) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        match self.read_arguments(&call.arguments()) {
            Ok(given) => (self.get)(call.context, given),
            Err(refusal) => Box::pin(std::future::ready(Err(refusal))),
        }
    }

    fn read_arguments(&self, arguments: &RawJson) -> Result<Vec<(String, String)>, Refusal> {
        let given = read_texts(arguments, "arguments")?;
        let mut required = self.described.arguments.iter().filter(|argument| argument.required == Some(true));
        match required.find(|argument| !given.iter().any(|(name, _)| *name == argument.name)) {
            Some(missing) => {
                Err(Refusal::INVALID_PARAMS
                    .with_message(format!("the argument `{}` is missing", missing.name)))
            }
            None => Ok(given),
        }
    }
}

impl fmt::Debug for PromptEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptEntry").field("described", &self.described).finish_non_exhaustive()
    }
}

/// Reads an object with values that must be texts; `place` names it in a refusal.
pub(crate) fn read_texts(object: &RawJson, place: &str) -> Result<Vec<(String, String)>, Refusal> {
    let refuse = |problem: String| Refusal::INVALID_PARAMS.with_message(problem);
    if object.kind() != JsonKind::Object {
        return Err(refuse(format!("`{place}` must be an object")));
    }
    let members =
        object.members().map_err(|error| refuse(format!("`{place}`: {}", shorten(&error.to_string()))))?;
    let texts = members.iter().map(|(name, value)| match value.as_text() {
        Some(text) => Ok((name.to_string(), text.into_owned())),
        None => Err(refuse(format!("the argument `{}` must be a string", shorten(name)))),
    });
    texts.collect()
}
