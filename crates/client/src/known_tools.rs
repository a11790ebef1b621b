//! The schemas of a server's tools, as last listed.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use serde_json::Value;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{CallToolResult, Tool};
use trunkline_protocol::{Method, RawJson};

use crate::call::ClientCall;
use crate::error::Error;
use crate::output_check::OutputCheck;
use crate::with_raw::WithRaw;

/// The most tools stored of several lists together, before the next list.
const MAX_TOOLS_OF_SEVERAL_LISTS: usize = 10_000;

/// The tools with an output schema or mirrored arguments.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    by_name: ArcSwap<HashMap<String, Arc<KnownTool>>>,
}

#[derive(Debug)]
struct KnownTool {
    mirrored: MirroredParams,
    output: Option<LazyOutputSchema>,
}

/// An output schema that is compiled on first use.
#[derive(Debug)]
struct LazyOutputSchema {
    schema: RawJson,
    check: OnceLock<Option<OutputCheck>>,
}

impl KnownTools {
    /// Stores the tools of a list, in addition to those of other lists if it is one of several. Tools without an
    /// output schema or mirrored arguments are not stored.
    pub(crate) fn learn<'a>(
        &self,
        tools: impl Iterator<Item = (&'a WithRaw<Tool>, MirroredParams)>,
        is_one_of_several: bool,
    ) {
        let learned = tools.filter_map(|(tool, mirrored)| {
            let output = tool.output_schema.as_ref();
            let output = output
                .map(|schema| LazyOutputSchema { schema: schema.to_owned_buffer(), check: OnceLock::new() });
            (output.is_some() || !mirrored.is_empty())
                .then(|| (tool.name.clone(), Arc::new(KnownTool { mirrored, output })))
        });
        let known = self.by_name.load();
        // Tools with ever new names are cleared all at once.
        let mut next = match is_one_of_several && known.len() <= MAX_TOOLS_OF_SEVERAL_LISTS {
            true => HashMap::clone(&known),
            false => HashMap::new(),
        };
        next.extend(learned);
        self.by_name.store(Arc::new(next));
    }

    /// Returns the headers that mirror arguments of a call. There are none for a tool that was never listed: the
    /// server rejects the call if it requires some.
    pub(crate) fn headers(&self, call: &ClientCall) -> Vec<(String, String)> {
        let known = self.by_name.load();
        if known.is_empty() || call.known_method != Some(Method::ToolsCall) {
            return Vec::new();
        }
        let Some(tool) = call.name.as_deref().and_then(|name| known.get(name)) else { return Vec::new() };
        if tool.mirrored.is_empty() {
            return Vec::new();
        }
        let arguments: Option<Value> = call.params.get("arguments").and_then(|raw| raw.decode().ok());
        tool.mirrored.headers(arguments.as_ref())
    }

    /// Validates a result against the tool's output schema.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the validation errors.
    pub(crate) fn check(&self, call: &ClientCall, result: &CallToolResult) -> Result<(), Error> {
        let known = self.by_name.load();
        let tool = call.name.as_deref().and_then(|name| known.get(name));
        let Some(output) = tool.and_then(|tool| tool.output.as_ref()) else { return Ok(()) };
        // The output schema does not apply to error results.
        if result.is_error {
            return Ok(());
        }
        let Some(check) = output.check.get_or_init(|| OutputCheck::compile(&output.schema)) else {
            return Ok(());
        };
        let name = call.name.as_deref().unwrap_or_default();
        let Some(structured) = &result.structured else {
            let problem = format!("`{name}` promises structured content and gave none");
            return Err(Error::Malformed(problem));
        };
        check.validation_error(structured).map_or(Ok(()), |complaint| {
            Err(Error::Malformed(format!(
                "the result of `{name}` is not what its schema promises: {complaint}"
            )))
        })
    }
}
