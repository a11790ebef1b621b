//! What is known of a server's tools from the last time that they were listed.

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

/// The most tools that are remembered of several lists together, before the next list.
const MAX_TOOLS_OF_SEVERAL_LISTS: usize = 10_000;

/// The tools that a call may need to know more of than their names.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    by_name: ArcSwap<HashMap<String, Arc<KnownTool>>>,
}

#[derive(Debug)]
struct KnownTool {
    mirrored: MirroredParams,
    output: Option<LazyOutputSchema>,
}

/// A schema that is compiled when it is first needed.
#[derive(Debug)]
struct LazyOutputSchema {
    schema: RawJson,
    check: OnceLock<Option<OutputCheck>>,
}

impl KnownTools {
    /// Learns the tools of a list, beside those of others if it is one of several. Those that need nothing are not remembered.
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
        // Tools that come and go under ever new names are forgotten all at once.
        let mut next = match is_one_of_several && known.len() <= MAX_TOOLS_OF_SEVERAL_LISTS {
            true => HashMap::clone(&known),
            false => HashMap::new(),
        };
        next.extend(learned);
        self.by_name.store(Arc::new(next));
    }

    /// Returns the headers that repeat arguments of a call. For a tool that was never listed there are none: the server
    /// says so if it wants some.
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

    /// Checks a result against the schema that the tool promises.
    ///
    /// # Errors
    /// [`Error::Malformed`] with what is wrong.
    pub(crate) fn check(&self, call: &ClientCall, result: &CallToolResult) -> Result<(), Error> {
        let known = self.by_name.load();
        let tool = call.name.as_deref().and_then(|name| known.get(name));
        let Some(output) = tool.and_then(|tool| tool.output.as_ref()) else { return Ok(()) };
        // What a tool says about its failure is not what it promises to say about its success.
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
