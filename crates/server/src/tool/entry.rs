use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};
use trunkline_protocol::json::JsonKind;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model;
use trunkline_protocol::{RawJson, Refusal, Revision};
use trunkline_session::Principal;

use super::arguments::{ArgumentCheck, PreCheck};
use super::run::{RunTool, ToolFuture, ToolRequest, tool_error};
use super::{InputSchemaSource, OutputSchemaSource, Tool};
use crate::call::{Caller, IncomingCall};
use crate::part::check_tool_name;
use crate::registry::RenderedItem;
use crate::schema::SchemaValidator;

/// A tool that is ready to be called.
pub(crate) struct ToolEntry {
    described: model::Tool,
    aliases: Vec<String>,
    rendered: RenderedItem,
    mirrored: Option<Arc<MirroredParams>>,
    check: ArgumentCheck,
    output: Option<Arc<SchemaValidator>>,
    replay: bool,
    required_scopes: Vec<Box<str>>,
    run: Box<dyn RunTool>,
}

impl ToolEntry {
    pub(super) fn build(tool: Tool) -> Result<Self, Vec<String>> {
        let mut problems = tool.problems;
        let mut described = tool.described;
        problems.extend(check_tool_name(&described.name).err());
        let (mut schema, before) = input_schema(tool.input).unwrap_or_else(|problem| {
            // Without a handler there is nothing that could have made a schema.
            problems.extend(tool.run.is_some().then_some(problem));
            (Map::new(), PreCheck::Nothing)
        });
        for (argument, header) in &tool.mirrors {
            problems.extend(mark_mirrored(&mut schema, argument, header).err());
        }
        let schema = Value::Object(schema);
        described.input_schema = RawJson::from(&schema);
        let mirrored = MirroredParams::from_schema(&schema);
        let validation_schema = tool
            .validation_schema
            .map(|validation_schema| validation_schema.get().map_err(|error| error.to_string()))
            .transpose();
        let check = validation_schema.and_then(|validation_schema| {
            ArgumentCheck::new(validation_schema.unwrap_or(schema), before, tool.validators)
        });
        let output = output_check(tool.output, &mut described);
        match (check, mirrored, output, tool.run) {
            (Ok(check), Ok(mirrored), Ok(output), Some(run)) if problems.is_empty() => Ok(Self {
                described,
                aliases: tool.aliases,
                rendered: RenderedItem::default(),
                mirrored: (!mirrored.is_empty()).then(|| Arc::new(mirrored)),
                check,
                output,
                replay: tool.replay,
                required_scopes: tool.required_scopes,
                run,
            }),
            (check, mirrored, output, run) => {
                problems
                    .extend(check.err().map(|problem| format!("its input schema is not valid: {problem}")));
                problems.extend(mirrored.err().map(|problem| problem.to_string()));
                problems
                    .extend(output.err().map(|problem| format!("its output schema is not valid: {problem}")));
                problems.extend(run.is_none().then(|| "has no handler".to_owned()));
                Err(problems)
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.described.name
    }

    pub(crate) fn aliases(&self) -> &[String] {
        &self.aliases
    }

    pub(crate) fn list_item(&self, revision: Revision) -> RawJson {
        self.rendered.get(revision, |dialect, writer| self.described.write(dialect, writer))
    }

    pub(crate) fn mirrored(&self) -> Option<Arc<MirroredParams>> {
        self.mirrored.clone()
    }

    /// Reports whether a caller has every scope that the tool needs. The process that this one talks to over pipes has
    /// no token, and the rights of its user.
    fn permits(&self, caller: &Caller) -> bool {
        caller.principal == Principal::Process
            || self.required_scopes.iter().all(|scope| caller.has_scope(scope))
    }

    /// Runs the tool and returns the handler's own future.
    pub(crate) fn call(&self, call: IncomingCall) -> ToolFuture {
        if !self.required_scopes.is_empty() && !call.context.with_caller(|caller| self.permits(caller)) {
            return refused(Refusal::insufficient_scope(&self.required_scopes));
        }
        let arguments = call.context.shared().arguments();
        if arguments.kind() != JsonKind::Object {
            return refused(Refusal::INVALID_PARAMS.with_message("`arguments` must be an object"));
        }
        if self.replay
            && let Err(refusal) = replay_responses(&call)
        {
            return refused(refusal);
        }
        if let Some(complaint) = self.check.violation(arguments) {
            return tool_error(complaint);
        }
        let output = self.output.clone();
        self.run.run(ToolRequest { context: call.context, check: &self.check, output })
    }
}

impl fmt::Debug for ToolEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolEntry").field("described", &self.described).finish_non_exhaustive()
    }
}

fn refused(refusal: Refusal) -> ToolFuture {
    Box::pin(std::future::ready(Err(refusal)))
}

/// Keeps the responses of this round, and gives the handler those of earlier rounds.
fn replay_responses(call: &IncomingCall) -> Result<(), Refusal> {
    let shared = call.context.shared();
    shared.record_responses();
    if let Some(kept) = &call.continuation {
        let answers: Vec<(String, RawJson)> =
            serde_json::from_slice(kept).map_err(|_| Refusal::STALE_STATE)?;
        shared.replay_responses(answers);
    }
    Ok(())
}

/// Returns the schema of the arguments, and what must be checked before they are read.
fn input_schema(input: InputSchemaSource) -> Result<(Map<String, Value>, PreCheck), String> {
    let (schema, before) = match input {
        InputSchemaSource::Unknown => {
            return Err("has no input schema; give one with `input_schema`".to_owned());
        }
        InputSchemaSource::Derived(derived) if derived.is_stricter => (derived.schema, PreCheck::Schema),
        InputSchemaSource::Derived(derived) if derived.checks_names => (derived.schema, PreCheck::Names),
        InputSchemaSource::Derived(derived) => (derived.schema, PreCheck::Nothing),
        InputSchemaSource::Explicit(raw) => match raw.get() {
            Ok(Value::Object(schema)) => (schema, PreCheck::Schema),
            _ => return Err("its input schema is not an object".to_owned()),
        },
    };
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(
            "its arguments are not an object: the input schema must say `\"type\": \"object\"`".to_owned()
        );
    }
    Ok((schema, before))
}

/// Marks a property of the schema as one that a header mirrors.
fn mark_mirrored(schema: &mut Map<String, Value>, argument: &str, header: &str) -> Result<(), String> {
    let property = schema.get_mut("properties").and_then(|properties| properties.get_mut(argument));
    let property = property.and_then(Value::as_object_mut);
    let property =
        property.ok_or_else(|| format!("mirrors `{argument}`, which is not one of its arguments"))?;
    // The rules for mirrored arguments know no types of two; an argument that is left out needs no `null`.
    if let Some(Value::Array(kinds)) = property.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_mut_slice() {
            let only = only.take();
            property.insert("type".to_owned(), only);
        }
    }
    property.insert("x-mcp-header".to_owned(), header.into());
    Ok(())
}

/// Describes the structured content, and returns the check against a schema that the author gave.
fn output_check(
    output: OutputSchemaSource,
    described: &mut model::Tool,
) -> Result<Option<Arc<SchemaValidator>>, String> {
    match output {
        OutputSchemaSource::None => Ok(None),
        OutputSchemaSource::Derived(schema) => {
            described.output_schema = Some(schema.into());
            Ok(None)
        }
        OutputSchemaSource::Explicit(raw) => {
            let schema: Value = raw.get().map_err(|error| error.to_string())?;
            let check = SchemaValidator::compile(&schema)?;
            described.output_schema = Some(raw);
            Ok(Some(Arc::new(check)))
        }
    }
}
