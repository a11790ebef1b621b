use crate::codec::Dialect;
use crate::json::{JsonKind, JsonObject, JsonWriter, RawJson};
use crate::model::field::{ModelField as _, ModelValue, ObjectReader, read_list, write_list, write_rest};
use crate::model::{Content, MalformedModel, Role, ToolUseContent};

use super::{InputRequest, UnsupportedFeature, form};

/// A client's response to an input request.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "answers are few and short-lived")]
pub enum InputResponse {
    /// The response to an elicitation.
    Elicit(ElicitResult),
    /// The response to a sampling request.
    Sampling(CreateMessageResult),
    /// The response to `roots/list`.
    Roots(Vec<Root>),
}

/// What the user did with an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElicitAction {
    /// The user submitted the form, or agreed to open the URL.
    Accept,
    /// The user declined.
    Decline,
    /// The user dismissed the input request without a decision.
    Cancel,
}

/// The user's response to an elicitation.
#[derive(Clone, Debug, PartialEq)]
pub struct ElicitResult {
    /// The action of the user.
    pub action: ElicitAction,
    /// The submitted form; an object.
    pub content: Option<RawJson>,
    /// Further members, `_meta` included, in order.
    pub rest: JsonObject,
}

/// The model's continuation of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateMessageResult {
    /// The role of the message.
    pub role: Role,
    /// The content blocks.
    pub content: Vec<Content>,
    /// The name of the model that generated the message.
    pub model: String,
    /// The stop reason, if it is known.
    pub stop_reason: Option<String>,
    /// The `_meta` of the wire format.
    pub meta: Option<JsonObject>,
    /// Members that no revision defines, in order.
    pub rest: JsonObject,
}

object! {
    /// A root of the client.
    #[derive(Default)]
    struct Root + meta {
        /// Its URI, which begins with `file://`.
        uri: String => "uri",
        /// The display name.
        name: Option<String> => "name",
    }
}

/// A response that does not match its input request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an answer to `{method}`: {problem}")]
pub struct InvalidInputResponse {
    /// The method of the input request.
    pub method: &'static str,
    /// What is wrong with the response.
    pub problem: MalformedModel,
}

impl InputRequest {
    /// Reads a client's response to the input request.
    ///
    /// # Errors
    /// The response does not match the input request.
    pub fn read_response(&self, raw: &RawJson) -> Result<InputResponse, InvalidInputResponse> {
        self.try_read_response(raw).map_err(|problem| InvalidInputResponse { method: self.method(), problem })
    }

    /// Reads a client's response to the input request as it was written in a dialect.
    ///
    /// A default that the dialect could not express was never shown to the user, so it is filled in here.
    ///
    /// # Errors
    /// The response does not match the input request.
    pub fn read_legacy_response(
        &self,
        dialect: &Dialect,
        raw: &RawJson,
    ) -> Result<InputResponse, InvalidInputResponse> {
        let mut answer = self.read_response(raw)?;
        if let (Self::Form(asked), InputResponse::Elicit(result)) = (self, &mut answer)
            && !dialect.rich_forms
        {
            result.content =
                result.content.take().map(|raw| form::with_dropped_defaults(&asked.schema, &raw));
        }
        Ok(answer)
    }

    /// Reads a client's response as [`InputRequest::read_legacy_response`] does, and also returns it as JSON with the
    /// dropped form defaults filled in.
    ///
    /// # Errors
    /// The response does not match the input request.
    pub fn read_relayed_response(
        &self,
        dialect: &Dialect,
        raw: RawJson,
    ) -> Result<(InputResponse, RawJson), InvalidInputResponse> {
        let answer = self.read_legacy_response(dialect, &raw)?;
        if !matches!(self, Self::Form(_)) || dialect.rich_forms {
            return Ok((answer, raw));
        }
        let mut writer = JsonWriter::with_capacity(raw.as_str().len() + 32);
        match answer.write(Dialect::NEWEST, &mut writer) {
            Ok(()) => Ok((answer, writer.into_raw())),
            Err(_) => Ok((answer, raw)),
        }
    }

    fn try_read_response(&self, raw: &RawJson) -> Result<InputResponse, MalformedModel> {
        match self {
            Self::Form(_) => ElicitResult::read(raw, true).map(InputResponse::Elicit),
            Self::Url(_) => ElicitResult::read(raw, false).map(InputResponse::Elicit),
            Self::Sampling(_) => CreateMessageResult::read(raw).map(InputResponse::Sampling),
            Self::Roots => ObjectReader::open(raw)?.take_list("roots").map(InputResponse::Roots),
        }
    }
}

impl InputResponse {
    /// Creates the response `accept`: the user submitted a form with this content, or agreed to open the URL.
    pub fn accept(content: Option<RawJson>) -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Accept, content, rest: JsonObject::new() })
    }

    /// Creates the response `decline`: the user explicitly declined.
    pub fn decline() -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Decline, content: None, rest: JsonObject::new() })
    }

    /// Creates the response `cancel`: the user dismissed the input request without a decision.
    pub fn cancel() -> Self {
        Self::Elicit(ElicitResult { action: ElicitAction::Cancel, content: None, rest: JsonObject::new() })
    }

    /// Writes the response in a dialect.
    ///
    /// # Errors
    /// The dialect cannot express it.
    pub fn write(&self, dialect: &Dialect, writer: &mut JsonWriter) -> Result<(), UnsupportedFeature> {
        match self {
            Self::Elicit(result) => result.write(writer),
            Self::Sampling(result) => return result.write(dialect, writer),
            Self::Roots(roots) => {
                writer.open_object();
                writer.plain_key("roots");
                write_list(roots, dialect, writer);
                writer.close_object();
            }
        }
        Ok(())
    }
}

impl ElicitAction {
    /// Returns the action's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }

    /// Reads an action's name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Accept, Self::Decline, Self::Cancel].into_iter().find(|action| action.as_str() == name)
    }
}

impl ElicitResult {
    fn read(raw: &RawJson, is_form: bool) -> Result<Self, MalformedModel> {
        let mut reader = ObjectReader::open(raw)?;
        let action = reader.take::<String>("action")?;
        let action = ElicitAction::parse(&action).ok_or_else(|| {
            MalformedModel::new("must be \"accept\", \"decline\" or \"cancel\"").within("action")
        })?;
        let content: Option<RawJson> = reader.take("content")?;
        let is_object = content.as_ref().map(|raw| raw.kind() == JsonKind::Object);
        if is_object == Some(false) || (is_object.is_none() && is_form && action == ElicitAction::Accept) {
            return Err(MalformedModel::new("must be an object").within("content"));
        }
        Ok(Self { action, content, rest: reader.0 })
    }
}

impl ElicitResult {
    fn write(&self, writer: &mut JsonWriter) {
        writer.open_object();
        writer.plain_key("action");
        writer.string(self.action.as_str());
        if let Some(content) = &self.content {
            writer.member("content", content);
        }
        write_rest(&self.rest, &["action", "content"], writer);
        writer.close_object();
    }
}

impl CreateMessageResult {
    /// Returns the tool calls that the model requests, in order.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUseContent> {
        self.content.iter().filter_map(Content::as_tool_use)
    }

    /// Returns the texts, joined by line breaks.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
    }

    fn write(&self, dialect: &Dialect, writer: &mut JsonWriter) -> Result<(), UnsupportedFeature> {
        let joined;
        let content = match self.content.as_slice() {
            [_] => self.content.as_slice(),
            several if dialect.sampling_tools => several,
            // A dialect with a single block gets several texts joined into one.
            several => {
                let texts: Option<Vec<&str>> = several.iter().map(Content::as_text).collect();
                let lacks = UnsupportedFeature {
                    feature: "answers of several blocks in sampling",
                    revision: dialect.revision(),
                };
                joined = [Content::text(texts.ok_or(lacks)?.join("\n"))];
                &joined
            }
        };
        writer.open_object();
        self.role.write_field("role", dialect, writer);
        writer.plain_key("content");
        match content {
            [block] => block.write(dialect, writer),
            blocks => write_list(blocks, dialect, writer),
        }
        self.model.write_field("model", dialect, writer);
        self.stop_reason.write_field("stopReason", dialect, writer);
        self.meta.write_field("_meta", dialect, writer);
        write_rest(&self.rest, &["role", "content", "model", "stopReason", "_meta"], writer);
        writer.close_object();
        Ok(())
    }

    fn read(raw: &RawJson) -> Result<Self, MalformedModel> {
        let mut reader = ObjectReader::open(raw)?;
        let content: RawJson = reader.take("content")?;
        // One block is written by itself before 2025-11-25, and may be after.
        let content = match content.kind() {
            JsonKind::Array => read_list(&content),
            _ => Content::read_value(&content).map(|block| vec![block]),
        };
        Ok(Self {
            role: reader.take("role")?,
            content: content.map_err(|error| error.within("content"))?,
            model: reader.take("model")?,
            stop_reason: reader.take("stopReason")?,
            meta: reader.take("_meta")?,
            rest: reader.0,
        })
    }
}
