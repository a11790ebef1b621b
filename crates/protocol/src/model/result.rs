use crate::codec::Dialect;
use crate::json::{JsonKind, JsonObject, JsonWriter, RawJson};

use super::field::{ModelField as _, ModelValue as _, ObjectReader, write_list, write_rest};
use super::{Content, MalformedModel, ResourceContents};

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallToolResult {
    /// The result, for the model to read.
    pub content: Vec<Content>,
    /// The result, for programs to read; [`RawJson::NULL`] is a value like any other.
    pub structured: Option<RawJson>,
    /// The tool failed, and `content` has the reason. A success that is to have `isError: false` has that member in
    /// `rest`.
    pub is_error: bool,
    /// The `_meta` of the wire format.
    pub meta: Option<JsonObject>,
    /// Members that no revision defines, in order.
    pub rest: JsonObject,
}

impl CallToolResult {
    /// Creates a result of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text)], ..Self::default() }
    }

    /// Creates an error result, which the model can read.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Creates a result of structured content, and repeats it as text for clients without structured content.
    pub fn structured(value: RawJson) -> Self {
        let mirror = value.as_str().to_owned();
        Self { structured: Some(value), ..Self::text(mirror) }
    }

    /// Reads the result.
    ///
    /// # Errors
    /// A member is missing or has the wrong type.
    pub fn read(raw: &RawJson) -> Result<Self, MalformedModel> {
        let mut reader = ObjectReader::open_result(raw)?;
        Ok(Self {
            content: reader.take_list("content")?,
            structured: reader.0.take("structuredContent"),
            is_error: reader.take::<Option<bool>>("isError")?.unwrap_or(false),
            meta: reader.take("_meta")?,
            rest: reader.0,
        })
    }

    /// Writes the result in a dialect, without the members of every result.
    pub fn write(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        write_standalone(self.meta.as_ref(), writer, |writer| self.write_members(dialect, writer));
    }

    pub(crate) fn write_members(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        writer.verbatim(r#""content":["#);
        for block in &self.content {
            block.write(dialect, writer);
        }
        // A reader without structured content would otherwise lose it.
        if let Some(value) =
            self.structured.as_ref().filter(|value| !dialect.structured && !self.mirrors(value))
        {
            Content::text(value.as_str()).write(dialect, writer);
        }
        writer.close_array();
        if let Some(value) = self.structured.as_ref().filter(|_| dialect.structured) {
            writer.plain_key("structuredContent");
            if dialect.structured_any || value.kind() == JsonKind::Object {
                writer.raw(value);
            } else {
                writer.open_object();
                writer.member("result", value);
                writer.close_object();
            }
        }
        if self.is_error {
            writer.plain_key("isError");
            writer.boolean(true);
        }
        let typed: &[&str] = if self.is_error {
            &["content", "structuredContent", "isError"]
        } else {
            &["content", "structuredContent"]
        };
        write_result_rest(&self.rest, typed, writer);
    }

    /// Reports whether a text block already has the JSON of a structured value, or of the value wrapped in it.
    fn mirrors(&self, value: &RawJson) -> bool {
        let wrapped = value.members().ok().filter(|members| members.len() == 1);
        let wrapped = wrapped.and_then(|mut members| members.take("result"));
        let says = |text: &str, value: &RawJson| {
            let parsed = |json| serde_json::from_str::<serde_json::Value>(json).ok();
            text == value.as_str() || parsed(text).is_some_and(|said| Some(said) == parsed(value.as_str()))
        };
        let mut texts = self.content.iter().filter_map(Content::as_text);
        texts.any(|text| says(text, value) || wrapped.as_ref().is_some_and(|wrapped| says(text, wrapped)))
    }
}

/// The caches that may store a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CacheScope {
    /// Any cache may store the result and serve it to any client.
    Public,
    /// Only the requesting client may store the result.
    #[default]
    Private,
}

impl CacheScope {
    /// Returns the scope's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}

/// How long a result may be cached, and by which caches; by default not at all.
///
/// See [Cacheable Model](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching#cacheable-model).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CacheHint {
    /// The time to live in milliseconds.
    pub ttl_ms: u64,
    /// The caches that may store it.
    pub scope: CacheScope,
}

impl CacheHint {
    /// Takes the hint out of a result. An absent or invalid hint means "do not cache".
    pub(super) fn take_from(members: &mut JsonObject) -> Self {
        let hint = Self::read(members);
        members.take("ttlMs");
        members.take("cacheScope");
        hint
    }

    /// Reads the hint of a result. An absent or invalid hint means "do not cache".
    pub fn read(result: &JsonObject) -> Self {
        let ttl = result.get("ttlMs").and_then(|raw| u64::read_value(raw).ok());
        let public = result.get("cacheScope").is_some_and(|raw| raw.as_text().as_deref() == Some("public"));
        Self {
            ttl_ms: ttl.unwrap_or(0),
            scope: if public { CacheScope::Public } else { CacheScope::Private },
        }
    }

    /// Writes the hint into the open object, if the dialect has one.
    pub(crate) fn write_members(self, dialect: &Dialect, writer: &mut JsonWriter) {
        if dialect.cache_hints {
            writer.plain_key("ttlMs");
            writer.unsigned(self.ttl_ms);
            writer.plain_key("cacheScope");
            writer.string(self.scope.as_str());
        }
    }
}

/// The result of `resources/read`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadResourceResult {
    /// The contents; one resource may have several.
    pub contents: Vec<ResourceContents>,
    /// How long they may be cached.
    pub cache: CacheHint,
    /// The `_meta` of the wire format.
    pub meta: Option<JsonObject>,
    /// Members that no revision defines, in order.
    pub rest: JsonObject,
}

impl ReadResourceResult {
    /// Creates a result of contents that may not be cached.
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        Self { contents, ..Self::default() }
    }

    /// Reads the result.
    ///
    /// # Errors
    /// A member is missing or has the wrong type.
    pub fn read(raw: &RawJson) -> Result<Self, MalformedModel> {
        let mut reader = ObjectReader::open_result(raw)?;
        Ok(Self {
            contents: reader.take_list("contents")?,
            cache: CacheHint::take_from(&mut reader.0),
            meta: reader.take("_meta")?,
            rest: reader.0,
        })
    }

    /// Writes the result in a dialect, without the members of every result.
    pub fn write(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        write_standalone(self.meta.as_ref(), writer, |writer| self.write_members(dialect, writer));
    }

    pub(crate) fn write_members(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        writer.plain_key("contents");
        write_list(&self.contents, dialect, writer);
        self.cache.write_members(dialect, writer);
        write_result_rest(&self.rest, &["contents", "ttlMs", "cacheScope"], writer);
    }
}

/// The completions of an argument.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompleteResult {
    /// The values, best first; only the first [`CompleteResult::MAX`] are written.
    pub values: Vec<String>,
    /// The total number of values, if it is known.
    pub total: Option<u64>,
    /// There are more than these.
    pub has_more: Option<bool>,
    /// Members of `completion` that no revision defines, in order.
    pub completion_rest: Box<JsonObject>,
    /// The `_meta` of the wire format.
    pub meta: Option<JsonObject>,
    /// Members that no revision defines, in order.
    pub rest: JsonObject,
}

impl CompleteResult {
    /// The most values that one result may have.
    ///
    /// See [Completion Results](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/completion#completion-results).
    pub const MAX: usize = 100;

    /// Creates a result of values.
    pub fn new(values: Vec<String>) -> Self {
        Self { values, ..Self::default() }
    }

    /// Reads the result.
    ///
    /// # Errors
    /// A member is missing or has the wrong type.
    pub fn read(raw: &RawJson) -> Result<Self, MalformedModel> {
        let mut outer = ObjectReader::open_result(raw)?;
        let completion: RawJson = outer.take("completion")?;
        let read = |raw| {
            let mut inner = ObjectReader::open(raw)?;
            let (values, total) = (inner.take_list("values")?, inner.take("total")?);
            let has_more = inner.take("hasMore")?;
            Ok(Self { values, total, has_more, completion_rest: Box::new(inner.0), ..Self::default() })
        };
        let result = read(&completion).map_err(|e: MalformedModel| e.within("completion"))?;
        Ok(Self { meta: outer.take("_meta")?, rest: outer.0, ..result })
    }

    /// Writes the result in a dialect, without the members of every result.
    pub fn write(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        write_standalone(self.meta.as_ref(), writer, |writer| self.write_members(dialect, writer));
    }

    pub(crate) fn write_members(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        let (shown, cut) = match self.values.split_at_checked(Self::MAX) {
            Some((shown, hidden)) => (shown, !hidden.is_empty()),
            None => (self.values.as_slice(), false),
        };
        let has_more = if cut { Some(true) } else { self.has_more };
        writer.plain_key("completion");
        writer.open_object();
        writer.plain_key("values");
        write_list(shown, dialect, writer);
        self.total.write_field("total", dialect, writer);
        has_more.write_field("hasMore", dialect, writer);
        write_rest(&self.completion_rest, &["values", "total", "hasMore"], writer);
        writer.close_object();
        write_result_rest(&self.rest, &["completion"], writer);
    }
}

/// Writes a result by itself: its members and its own `_meta`.
pub(super) fn write_standalone(
    meta: Option<&JsonObject>,
    writer: &mut JsonWriter,
    members: impl FnOnce(&mut JsonWriter),
) {
    writer.open_object();
    members(writer);
    if let Some(meta) = meta {
        writer.plain_key("_meta");
        writer.open_object();
        meta.write_into(writer);
        writer.close_object();
    }
    writer.close_object();
}

/// Writes carried members of a result, except those that the type or the dialect writes itself.
pub(super) fn write_result_rest(rest: &JsonObject, typed: &[&str], writer: &mut JsonWriter) {
    for (key, value) in rest.iter() {
        let ours = typed.iter().any(|name| key == name) || key == "resultType" || key == "_meta";
        if !ours {
            writer.member(key, value);
        }
    }
}
