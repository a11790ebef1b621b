use crate::codec::Dialect;
use crate::json::{JsonKind, Members, Raw, Writer};
use crate::model::PromptMessage;
use crate::model::field::write_list;

/// A conversation for the client's model to go on with.
///
/// Its parameters stay raw, because most of them are for the client alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleQuestion {
    /// The parameters of `sampling/createMessage`.
    pub params: Members,
}

impl SampleQuestion {
    /// Asks the model to go on with a conversation, by at most `max_tokens`.
    pub fn new(messages: impl AsRef<[PromptMessage]>, max_tokens: u32) -> Self {
        let mut writer = Writer::with_capacity(128);
        write_list(messages.as_ref(), Dialect::NEWEST, &mut writer);
        let mut limit = Writer::with_capacity(8);
        limit.unsigned(max_tokens.into());
        let mut params = Members::new();
        params.set("messages", writer.into_raw());
        params.set("maxTokens", limit.into_raw());
        Self { params }
    }

    /// Sets the system prompt, which the client may change.
    #[must_use]
    pub fn system(self, prompt: &str) -> Self {
        self.with("systemPrompt", Raw::from_text(prompt))
    }

    /// Sets the tools that the model may call, an array of tool objects.
    #[must_use]
    pub fn tools(self, tools: Raw) -> Self {
        self.with("tools", tools)
    }

    /// Sets any other parameter.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: Raw) -> Self {
        self.params.set(key, value);
        self
    }

    pub(super) fn needs_tools(&self) -> bool {
        self.params.get("tools").is_some() || self.params.get("toolChoice").is_some()
    }

    /// Returns the parameters in a dialect, or names what cannot be said in it.
    pub(super) fn for_dialect(&self, dialect: &Dialect) -> Result<Raw, &'static str> {
        if dialect.sampling_tools {
            return Ok(self.params.to_raw());
        }
        if self.needs_tools() {
            return Err("tools in sampling");
        }
        let messages = self.params.get("messages").and_then(|raw| raw.elements().ok());
        let Some(messages) = messages else { return Ok(self.params.to_raw()) };
        let mut writer = Writer::with_capacity(256);
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
fn write_split(message: &Raw, dialect: &Dialect, writer: &mut Writer) -> Result<(), &'static str> {
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

fn check_block(block: &Raw, dialect: &Dialect) -> Result<(), &'static str> {
    let kind = block.members().ok().and_then(|members| members.text("type"));
    match kind.as_deref() {
        Some("tool_use" | "tool_result") => Err("tool content in sampling"),
        Some("audio") if !dialect.audio => Err("audio in sampling"),
        _ => Ok(()),
    }
}
