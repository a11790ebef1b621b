use crate::codec::Dialect;
use crate::json::{JsonObject, JsonWriter, RawJson};

use super::field::{ModelField as _, ObjectReader, write_list};
use super::result::{write_result_rest, write_standalone};
use super::{Content, Icon, MalformedModel, Role};

object! {
    /// A prompt that a server offers.
    #[derive(Default)]
    struct Prompt + meta {
        /// The name by which it is fetched.
        name: String => "name",
        /// The display name.
        title: Option<String> => "title" if title,
        /// What it is for.
        description: Option<String> => "description",
        /// The arguments.
        arguments: Vec<PromptArgument> => "arguments",
        /// The icons.
        icons: Vec<Icon> => "icons" if icons,
    }
}

impl Prompt {
    /// Names a prompt.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

object! {
    /// An argument of a prompt; its value is always text.
    #[derive(Default)]
    struct PromptArgument {
        /// The programmatic name.
        name: String => "name",
        /// The display name.
        title: Option<String> => "title" if title,
        /// What it means.
        description: Option<String> => "description",
        /// The argument is required.
        required: Option<bool> => "required",
    }
}

impl PromptArgument {
    /// Creates an optional argument.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Creates a required argument.
    pub fn required(name: impl Into<String>) -> Self {
        Self { required: Some(true), ..Self::new(name) }
    }
}

object! {
    /// One message of a prompt.
    struct PromptMessage {
        /// The role of the message.
        role: Role => "role",
        /// The content of the message.
        content: Content => "content",
    }
}

impl PromptMessage {
    /// Creates a message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: Role::User, content: content.into(), rest: JsonObject::new() }
    }

    /// Creates a message of the assistant.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self { role: Role::Assistant, content: content.into(), rest: JsonObject::new() }
    }
}

/// The result of `prompts/get`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetPromptResult {
    /// What the prompt is for.
    pub description: Option<String>,
    /// The conversation so far.
    pub messages: Vec<PromptMessage>,
    /// The `_meta` of the wire format.
    pub meta: Option<JsonObject>,
    /// Members that no revision defines, in order.
    pub rest: JsonObject,
}

impl GetPromptResult {
    /// Creates a result of messages.
    pub fn new(messages: Vec<PromptMessage>) -> Self {
        Self { messages, ..Self::default() }
    }

    /// Reads the result.
    ///
    /// # Errors
    /// A member is missing or has the wrong type.
    pub fn read(raw: &RawJson) -> Result<Self, MalformedModel> {
        let mut reader = ObjectReader::open_result(raw)?;
        Ok(Self {
            description: reader.take("description")?,
            messages: reader.take_list("messages")?,
            meta: reader.take("_meta")?,
            rest: reader.0,
        })
    }

    /// Writes the result in a dialect, without the members of every result.
    pub fn write(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        write_standalone(self.meta.as_ref(), writer, |writer| self.write_members(dialect, writer));
    }

    pub(crate) fn write_members(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        self.description.write_field("description", dialect, writer);
        writer.plain_key("messages");
        write_list(&self.messages, dialect, writer);
        write_result_rest(&self.rest, &["description", "messages"], writer);
    }
}
