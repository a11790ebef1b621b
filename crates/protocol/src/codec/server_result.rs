use crate::json::{JsonObject, JsonWriter, RawJson};
use crate::meta::SERVER_INFO;
use crate::model::{
    CacheHint, CallToolResult, CompleteResult, Content, GetPromptResult, InputRequest, ReadResourceResult,
};

use super::{Dialect, RelayedResult};

/// A result of a server, before a dialect is chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerResult {
    /// An empty result.
    Empty,
    /// An object that is relayed verbatim.
    Object(JsonObject),
    /// The relayed result of an upstream server.
    Relayed(RelayedResult),
    /// The result of a tool call.
    Tool(CallToolResult),
    /// A prompt with its arguments filled in.
    Prompt(GetPromptResult),
    /// The contents of a resource.
    Read(ReadResourceResult),
    /// The completions of an argument.
    Complete(CompleteResult),
    /// One page of a list.
    ///
    /// See [Pagination, Response Format](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination#response-format).
    List(ListPageResult),
    /// Input requests that the client must answer first.
    InputRequired(InputRequiredResult),
}

impl ServerResult {
    /// Estimates the size of the response in bytes, mostly its text, since a growing buffer copies it several times.
    pub fn length_hint(&self) -> usize {
        const SHORT: usize = 256;
        let text = |content: &[Content]| -> usize {
            content.iter().filter_map(Content::as_text).map(str::len).sum()
        };
        match self {
            Self::Tool(result) => {
                SHORT + text(&result.content) + result.structured.as_ref().map_or(0, |raw| raw.as_str().len())
            }
            _ => SHORT,
        }
    }

    /// Reports whether a tool failed (`isError`).
    pub fn is_tool_error(&self) -> bool {
        match self {
            Self::Tool(result) => result.is_error,
            Self::Relayed(result) => result.is_error(),
            _ => false,
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListPageResult {
    /// The member that holds the items, such as `tools`.
    pub key: &'static str,
    /// The items, already written in the dialect.
    pub items: Vec<RawJson>,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<String>,
    /// How long the page may be cached.
    pub cache: CacheHint,
}

/// Input requests that the client must answer before the server can answer its request, each under its own key.
///
/// Only the modern era has this result; a legacy server sends its own requests instead.
///
/// See [InputRequiredResult](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#inputrequiredresult).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputRequiredResult {
    /// The input requests; with none the client just sends its request again, with `request_state`.
    pub input_requests: Vec<(String, InputRequest)>,
    /// The opaque state that the client must return together with its responses.
    pub request_state: Option<String>,
}

pub(super) const RESULT_TYPE: &str = "resultType";
pub(super) const TTL: &str = "ttlMs";
pub(super) const CACHE_SCOPE: &str = "cacheScope";

/// Writes the whole result object of a reply in a dialect.
///
/// `server_info` is the server's [`Implementation`](crate::model::Implementation), already written; dialects that name the
/// server in every result copy it.
///
/// See [ResultType](https://modelcontextprotocol.io/specification/2026-07-28/basic/index#resulttype).
pub fn write_result(reply: &ServerResult, dialect: &Dialect, server_info: &RawJson, writer: &mut JsonWriter) {
    writer.open_object();
    if dialect.result_type {
        match reply {
            ServerResult::InputRequired(_) => writer.verbatim(r#""resultType":"input_required""#),
            // A relayed object may have a type that an extension defines.
            ServerResult::Object(members) if members.get(RESULT_TYPE).is_some() => {
                writer.member(RESULT_TYPE, members.get(RESULT_TYPE).unwrap_or(&RawJson::NULL));
            }
            _ => writer.verbatim(r#""resultType":"complete""#),
        }
    }
    let carried;
    let meta = match reply {
        ServerResult::Empty => None,
        ServerResult::Object(members) => {
            write_object_result(members, dialect, writer);
            carried = members.get("_meta").and_then(|raw| raw.members().ok());
            carried.as_ref()
        }
        ServerResult::Relayed(result) => {
            result.write_members(dialect, writer);
            carried = result.meta();
            carried.as_ref()
        }
        ServerResult::Tool(result) => {
            result.write_members(dialect, writer);
            result.meta.as_ref()
        }
        ServerResult::Prompt(result) => {
            result.write_members(dialect, writer);
            result.meta.as_ref()
        }
        ServerResult::Read(result) => {
            result.write_members(dialect, writer);
            result.meta.as_ref()
        }
        ServerResult::Complete(result) => {
            result.write_members(dialect, writer);
            result.meta.as_ref()
        }
        ServerResult::List(page) => {
            page.write_members(dialect, writer);
            None
        }
        ServerResult::InputRequired(round) => {
            round.write_members(writer);
            None
        }
    };
    write_result_meta(meta, dialect, server_info, writer);
    writer.close_object();
}

/// Writes a relayed object, except for members that the dialect adds to every result or does not have.
fn write_object_result(members: &JsonObject, dialect: &Dialect, writer: &mut JsonWriter) {
    for (key, value) in members.iter() {
        let skipped = match &**key {
            RESULT_TYPE | "_meta" => true,
            TTL | CACHE_SCOPE => !dialect.cache_hints,
            _ => false,
        };
        if !skipped {
            writer.member(key, value);
        }
    }
}

/// Writes the `_meta` of a result: its own members, and the server's identity.
fn write_result_meta(
    meta: Option<&JsonObject>,
    dialect: &Dialect,
    server_info: &RawJson,
    writer: &mut JsonWriter,
) {
    // The identity of another server is not repeated, so a relayed one is dropped in every dialect.
    let carried = |meta: &JsonObject| meta.is_empty() || meta.iter().any(|(key, _)| key != SERVER_INFO);
    if !dialect.server_info && !meta.is_some_and(carried) {
        return;
    }
    writer.verbatim(r#""_meta":{"#);
    for (key, value) in meta.iter().flat_map(|meta| meta.iter()) {
        if key != SERVER_INFO {
            writer.member(key, value);
        }
    }
    if dialect.server_info {
        writer.plain_key(SERVER_INFO);
        writer.raw(server_info);
    }
    writer.close_object();
}

impl ListPageResult {
    fn write_members(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        writer.plain_key(self.key);
        writer.open_array();
        for item in &self.items {
            writer.raw(item);
        }
        writer.close_array();
        if let Some(cursor) = &self.next_cursor {
            writer.plain_key("nextCursor");
            writer.string(cursor);
        }
        self.cache.write_members(dialect, writer);
    }
}

impl InputRequiredResult {
    fn write_members(&self, writer: &mut JsonWriter) {
        if !self.input_requests.is_empty() {
            writer.plain_key("inputRequests");
            writer.open_object();
            for (key, question) in &self.input_requests {
                writer.key(key);
                question.write_input_request(writer);
            }
            writer.close_object();
        }
        if let Some(state) = &self.request_state {
            writer.plain_key("requestState");
            writer.string(state);
        }
    }
}
