use crate::json::{Members, Raw, Writer};
use crate::meta::SERVER_INFO;
use crate::model::{
    CacheHint, CallToolResult, CompleteResult, Content, GetPromptResult, Question, ReadResult,
};

use super::{Carried, Dialect};

/// What a server answers, before a dialect is chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// That it was done, and nothing more.
    Empty,
    /// An object that is carried as it is.
    Object(Members),
    /// What another server answered, on its way through.
    Carried(Carried),
    /// What came of calling a tool.
    Tool(CallToolResult),
    /// A prompt, filled in.
    Prompt(GetPromptResult),
    /// What was read from a resource.
    Read(ReadResult),
    /// What an argument could be completed to.
    Complete(CompleteResult),
    /// One page of a list.
    List(ListReply),
    /// Questions that must be answered first.
    InputRequired(InputRequired),
}

impl Reply {
    /// Guesses how many bytes the reply takes: what is long in it is text, and growing to it would copy it several times.
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

    /// Reports whether a tool says that it failed.
    pub fn is_tool_error(&self) -> bool {
        match self {
            Self::Tool(result) => result.is_error,
            Self::Carried(result) => result.is_error(),
            _ => false,
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListReply {
    /// The member that holds the items, such as `tools`.
    pub key: &'static str,
    /// The items, already written in the dialect.
    pub items: Vec<Raw>,
    /// Where the next page begins, if there is one.
    pub next_cursor: Option<String>,
    /// How long the page may be kept.
    pub cache: CacheHint,
}

/// Questions that must be answered before the request can be, each under a key of its own.
///
/// Only the modern era answers so; a legacy server asks by requests of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputRequired {
    /// The questions; none means "come again".
    pub questions: Vec<(String, Question)>,
    /// What the client must repeat together with its answers.
    pub state: Option<String>,
}

pub(super) const RESULT_TYPE: &str = "resultType";
pub(super) const TTL: &str = "ttlMs";
pub(super) const CACHE_SCOPE: &str = "cacheScope";

/// Writes the whole result object of a reply in a dialect.
///
/// `server_info` is the server's [`Implementation`](crate::model::Implementation), already written; dialects that name the
/// server in every result copy it.
pub fn write_reply(reply: &Reply, dialect: &Dialect, server_info: &Raw, writer: &mut Writer) {
    writer.open_object();
    if dialect.result_type {
        match reply {
            Reply::InputRequired(_) => writer.verbatim(r#""resultType":"input_required""#),
            // A carried object may be of a type that an extension brings.
            Reply::Object(members) if members.get(RESULT_TYPE).is_some() => {
                writer.member(RESULT_TYPE, members.get(RESULT_TYPE).unwrap_or(&Raw::NULL));
            }
            _ => writer.verbatim(r#""resultType":"complete""#),
        }
    }
    let carried;
    let meta = match reply {
        Reply::Empty => None,
        Reply::Object(members) => {
            write_carried(members, dialect, writer);
            carried = members.get("_meta").and_then(|raw| raw.members().ok());
            carried.as_ref()
        }
        Reply::Carried(result) => {
            result.write_members(dialect, writer);
            carried = result.meta();
            carried.as_ref()
        }
        Reply::Tool(result) => {
            result.write_members(dialect, writer);
            result.meta.as_ref()
        }
        Reply::Prompt(result) => {
            result.write_members(dialect, writer);
            result.meta.as_ref()
        }
        Reply::Read(result) => {
            result.write_members(dialect, writer);
            result.meta.as_ref()
        }
        Reply::Complete(result) => {
            result.write_members(dialect, writer);
            result.meta.as_ref()
        }
        Reply::List(page) => {
            page.write_members(dialect, writer);
            None
        }
        Reply::InputRequired(round) => {
            round.write_members(writer);
            None
        }
    };
    write_result_meta(meta, dialect, server_info, writer);
    writer.close_object();
}

/// Writes a carried object, except for what the dialect adds to every result or does not know.
fn write_carried(members: &Members, dialect: &Dialect, writer: &mut Writer) {
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

/// Writes the `_meta` of a result: its own members, and who made it.
fn write_result_meta(meta: Option<&Members>, dialect: &Dialect, server_info: &Raw, writer: &mut Writer) {
    // Another server's name is not ours to repeat, so a carried one is dropped in every dialect.
    let carried = |meta: &Members| meta.is_empty() || meta.iter().any(|(key, _)| key != SERVER_INFO);
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

impl ListReply {
    fn write_members(&self, dialect: &Dialect, writer: &mut Writer) {
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

impl InputRequired {
    fn write_members(&self, writer: &mut Writer) {
        if !self.questions.is_empty() {
            writer.plain_key("inputRequests");
            writer.open_object();
            for (key, question) in &self.questions {
                writer.key(key);
                question.write_input_request(writer);
            }
            writer.close_object();
        }
        if let Some(state) = &self.state {
            writer.plain_key("requestState");
            writer.string(state);
        }
    }
}
