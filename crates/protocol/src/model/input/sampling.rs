use crate::codec::Dialect;
use crate::json::{JsonKind, JsonObject, JsonWriter, RawJson};
use crate::model::field::{ModelField as _, write_list};
use crate::model::{Content, PromptMessage, Role, Tool};

/// Whether a model must call a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model must call at least one.
    Required,
    /// The model must not call one.
    None,
}

impl ToolChoice {
    /// Returns the name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::None => "none",
        }
    }
}

/// A sampling request to the client's model.
///
/// Its parameters stay raw, because most of them are for the client alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateMessageRequest {
    /// The parameters of `sampling/createMessage`.
    pub params: JsonObject,
}

impl CreateMessageRequest {
    /// Creates a sampling request that continues a conversation by at most `max_tokens`.
    pub fn new(messages: impl AsRef<[PromptMessage]>, max_tokens: u32) -> Self {
        let mut writer = JsonWriter::with_capacity(128);
        write_list(messages.as_ref(), Dialect::NEWEST, &mut writer);
        let mut limit = JsonWriter::with_capacity(8);
        limit.unsigned(max_tokens.into());
        let mut params = JsonObject::new();
        params.set("messages", writer.into_raw());
        params.set("maxTokens", limit.into_raw());
        Self { params }
    }

    /// Sets the system prompt, which the client may change.
    #[must_use]
    pub fn system(self, prompt: &str) -> Self {
        self.with("systemPrompt", RawJson::from_text(prompt))
    }

    /// Adds a user message of one or several blocks. Tool results need a message of their own.
    #[must_use]
    pub fn user(self, blocks: impl AsRef<[Content]>) -> Self {
        self.message(Role::User, blocks.as_ref())
    }

    /// Adds an assistant message of one or several blocks.
    #[must_use]
    pub fn assistant(self, blocks: impl AsRef<[Content]>) -> Self {
        self.message(Role::Assistant, blocks.as_ref())
    }

    fn message(mut self, role: Role, blocks: &[Content]) -> Self {
        let before = self.params.get("messages").and_then(|raw| raw.elements().ok()).unwrap_or_default();
        let mut writer = JsonWriter::with_capacity(256);
        writer.open_array();
        for message in &before {
            writer.raw(message);
        }
        writer.open_object();
        role.write_field("role", Dialect::NEWEST, &mut writer);
        writer.plain_key("content");
        match blocks {
            [block] => block.write(Dialect::NEWEST, &mut writer),
            blocks => write_list(blocks, Dialect::NEWEST, &mut writer),
        }
        writer.close_object();
        writer.close_array();
        self.params.set("messages", writer.into_raw());
        self
    }

    /// Sets the tools that the model may call, for this request alone.
    #[must_use]
    pub fn tools(self, tools: impl AsRef<[Tool]>) -> Self {
        let mut writer = JsonWriter::with_capacity(256);
        write_list(tools.as_ref(), Dialect::NEWEST, &mut writer);
        self.with("tools", writer.into_raw())
    }

    /// Sets whether the model must call a tool.
    #[must_use]
    pub fn tool_choice(self, choice: ToolChoice) -> Self {
        let mut object = JsonObject::new();
        object.set("mode", RawJson::from_text(choice.as_str()));
        self.with("toolChoice", object.to_raw())
    }

    /// Sets any other parameter.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: RawJson) -> Self {
        self.params.set(key, value);
        self
    }

    /// Removes `includeContext`, unless it is `none`.
    pub(super) fn without_context(mut self) -> Self {
        let includes = |scope: &RawJson| scope.as_text().as_deref() != Some("none");
        if self.params.get("includeContext").is_some_and(includes) {
            self.params.take("includeContext");
        }
        self
    }

    pub(super) fn needs_tools(&self) -> bool {
        self.params.get("tools").is_some() || self.params.get("toolChoice").is_some()
    }

    /// Returns the parameters in a dialect, or names the feature that the dialect lacks.
    pub(super) fn for_dialect(&self, dialect: &Dialect) -> Result<RawJson, &'static str> {
        if dialect.sampling_tools {
            return Ok(self.params.to_raw());
        }
        if self.needs_tools() {
            return Err("tools in sampling");
        }
        let messages = self.params.get("messages").and_then(|raw| raw.elements().ok());
        let Some(messages) = messages else { return Ok(self.params.to_raw()) };
        let mut writer = JsonWriter::with_capacity(256);
        writer.open_array();
        for message in &messages {
            write_split(message, dialect, &mut writer)?;
        }
        writer.close_array();
        let mut params = self.params.clone();
        params.set("messages", writer.into_raw());
        Ok(params.to_raw())
    }
}

/// Writes a message of several blocks as several messages of one block each.
fn write_split(message: &RawJson, dialect: &Dialect, writer: &mut JsonWriter) -> Result<(), &'static str> {
    let members = message.members().unwrap_or_default();
    let blocks = match members.get("content") {
        Some(content) if content.kind() == JsonKind::Array => content.elements().unwrap_or_default(),
        content => {
            content.map_or(Ok(()), |block| check_block(block, dialect))?;
            writer.raw(message);
            return Ok(());
        }
    };
    for block in blocks {
        check_block(&block, dialect)?;
        let mut single = members.clone();
        single.set("content", block);
        writer.raw(&single.to_raw());
    }
    Ok(())
}

fn check_block(block: &RawJson, dialect: &Dialect) -> Result<(), &'static str> {
    let kind = block.members().ok().and_then(|members| members.text("type"));
    match kind.as_deref() {
        Some("tool_use" | "tool_result") => Err("tool content in sampling"),
        Some("audio") if !dialect.audio => Err("audio in sampling"),
        _ => Ok(()),
    }
}
