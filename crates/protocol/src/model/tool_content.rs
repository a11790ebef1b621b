//! Tool content in sampling: the model's tool calls, and their results.

use crate::codec::Dialect;
use crate::json::{JsonObject, JsonWriter, RawJson};

use super::field::{ModelField as _, ObjectReader, write_entity_meta, write_list, write_rest};
use super::{CallToolResult, Content, MalformedModel};

object! {
    /// A model's tool call.
    struct ToolUseContent + meta {
        /// The id of the call, which its result repeats.
        id: String => "id",
        /// The tool, one of those that the sampling request listed.
        name: String => "name",
        /// The arguments.
        input: RawJson => "input",
    }
}

/// The result of a model's tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResultContent {
    /// The id of the call.
    pub tool_use_id: String,
    /// The result, for the model to read.
    pub content: Vec<Content>,
    /// The result as a structured value.
    pub structured: Option<RawJson>,
    /// Whether the call failed.
    pub is_error: bool,
    /// The `_meta` of the wire format.
    pub meta: Option<JsonObject>,
    /// Members that no revision defines, in order.
    pub rest: JsonObject,
}

impl Content {
    /// Creates a model's tool call.
    pub fn tool_use(id: impl Into<String>, name: impl Into<String>, input: impl Into<RawJson>) -> Self {
        let (id, name, input) = (id.into(), name.into(), input.into());
        Self::ToolUse(ToolUseContent { id, name, input, meta: None, rest: JsonObject::new() })
    }

    /// Creates the result of a model's tool call.
    pub fn tool_result(tool_use_id: impl Into<String>, result: CallToolResult) -> Self {
        let CallToolResult { content, structured, is_error, .. } = result;
        let tool_use_id = tool_use_id.into();
        Self::ToolResult(ToolResultContent {
            tool_use_id,
            content,
            structured,
            is_error,
            ..ToolResultContent::default()
        })
    }

    /// Returns the tool call, if the block is one.
    pub fn as_tool_use(&self) -> Option<&ToolUseContent> {
        match self {
            Self::ToolUse(wish) => Some(wish),
            _ => None,
        }
    }
}

impl ToolResultContent {
    pub(super) fn from_reader(mut reader: ObjectReader) -> Result<Self, MalformedModel> {
        Ok(Self {
            tool_use_id: reader.take("toolUseId")?,
            content: reader.take_list("content")?,
            structured: reader.take("structuredContent")?,
            is_error: reader.take::<Option<bool>>("isError")?.unwrap_or_default(),
            meta: reader.take("_meta")?,
            rest: reader.0,
        })
    }

    pub(super) fn write(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        const TYPED: &[&str] = &["type", "toolUseId", "content", "structuredContent", "isError", "_meta"];
        writer.open_object();
        writer.plain_key("type");
        writer.string("tool_result");
        self.tool_use_id.write_field("toolUseId", dialect, writer);
        // The member is required even if it is empty.
        writer.plain_key("content");
        write_list(&self.content, dialect, writer);
        self.structured.write_field("structuredContent", dialect, writer);
        self.is_error.then_some(true).write_field("isError", dialect, writer);
        write_entity_meta(self.meta.as_ref(), dialect, writer);
        write_rest(&self.rest, TYPED, writer);
        writer.close_object();
    }
}
