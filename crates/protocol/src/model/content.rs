use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::codec::Dialect;
use crate::json::{JsonObject, JsonWriter, RawJson};

use super::field::{ModelValue, ObjectReader};
use super::{
    Annotations, MalformedModel, Resource, ResourceBody, ResourceContents, ToolResultContent, ToolUseContent,
};

/// One block of content in a result, a prompt or a sampling message.
#[derive(Clone, Debug, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "blocks live in a `Vec`, are few, and are built and matched by hand"
)]
pub enum Content {
    /// Text.
    Text(TextContent),
    /// An image.
    Image(MediaContent),
    /// Audio.
    Audio(MediaContent),
    /// An embedded resource with its contents.
    Resource(EmbeddedResource),
    /// A link to a resource.
    ResourceLink(Resource),
    /// A model's tool call, in sampling only.
    ToolUse(ToolUseContent),
    /// The result of such a call, in sampling only.
    ToolResult(ToolResultContent),
    /// A kind that no revision defines; the whole object.
    Other(JsonObject),
}

object! {
    /// A block of text.
    #[derive(Default)]
    struct TextContent + meta {
        /// The text.
        text: String => "text",
        /// Hints about its use.
        annotations: Option<Annotations> => "annotations",
    }
}

object! {
    /// An image or audio.
    #[derive(Default)]
    struct MediaContent + meta {
        /// The bytes, in base64.
        data: String => "data",
        /// The media type.
        mime_type: String => "mimeType",
        /// Hints about its use.
        annotations: Option<Annotations> => "annotations",
    }
}

object! {
    /// A resource within a result or a message.
    #[derive(Default)]
    struct EmbeddedResource + meta {
        /// The resource's contents.
        resource: ResourceContents => "resource",
        /// Hints about its use.
        annotations: Option<Annotations> => "annotations",
    }
}

impl Content {
    /// Creates a block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), ..TextContent::default() })
    }

    /// Creates an image.
    pub fn image(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::Image(MediaContent::new(bytes, mime_type))
    }

    /// Creates audio.
    pub fn audio(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self::Audio(MediaContent::new(bytes, mime_type))
    }

    /// Embeds a resource.
    pub fn embedded(resource: ResourceContents) -> Self {
        Self::Resource(EmbeddedResource { resource, ..EmbeddedResource::default() })
    }

    /// Links to a resource.
    pub fn link(resource: Resource) -> Self {
        Self::ResourceLink(resource)
    }

    /// Returns the text, if the block is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// Reads a block of any kind.
    ///
    /// # Errors
    /// `type` is not a string, or the block does not have the shape of its kind.
    pub fn read(raw: &RawJson) -> Result<Self, MalformedModel> {
        let mut reader = ObjectReader::open(raw)?;
        let kind = reader.0.get("type").and_then(RawJson::to_text);
        let kind = kind.ok_or_else(|| MalformedModel::new("must be a string").within("type"))?;
        reader.0.take("type");
        match &*kind {
            "text" => TextContent::from_reader(reader).map(Self::Text),
            "image" => MediaContent::from_reader(reader).map(Self::Image),
            "audio" => MediaContent::from_reader(reader).map(Self::Audio),
            "resource" => EmbeddedResource::from_reader(reader).map(Self::Resource),
            "resource_link" => Resource::from_reader(reader).map(Self::ResourceLink),
            "tool_use" => ToolUseContent::from_reader(reader).map(Self::ToolUse),
            "tool_result" => ToolResultContent::from_reader(reader).map(Self::ToolResult),
            // The block's type is unknown, so its members are kept as they are.
            _ => Ok(Self::Other(raw.members()?)),
        }
    }

    /// Writes the block in a dialect, as a kind that the dialect has.
    pub fn write(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        match self {
            // The common case: nothing but a text.
            Self::Text(TextContent { text, annotations: None, meta: None, rest }) if rest.is_empty() => {
                writer.verbatim(r#"{"type":"text","text":"#);
                writer.string(text);
                writer.close_object();
            }
            Self::Text(text) => text.write_as(Some("text"), dialect, writer),
            Self::Image(image) => image.write_as(Some("image"), dialect, writer),
            Self::Audio(audio) if dialect.audio => audio.write_as(Some("audio"), dialect, writer),
            Self::Audio(audio) => audio.as_embedded().write_as(Some("resource"), dialect, writer),
            Self::Resource(resource) => resource.write_as(Some("resource"), dialect, writer),
            Self::ResourceLink(link) if dialect.resource_link => {
                link.write_as(Some("resource_link"), dialect, writer);
            }
            Self::ResourceLink(link) => link.as_text().write_as(Some("text"), dialect, writer),
            Self::ToolUse(wish) => wish.write_as(Some("tool_use"), dialect, writer),
            Self::ToolResult(result) => result.write(dialect, writer),
            Self::Other(object) => object.write_value(dialect, writer),
        }
    }
}

impl ModelValue for Content {
    fn read_value(raw: &RawJson) -> Result<Self, MalformedModel> {
        Self::read(raw)
    }

    fn write_value(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        self.write(dialect, writer);
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl MediaContent {
    /// Creates content of bytes.
    pub fn new(bytes: &[u8], mime_type: impl Into<String>) -> Self {
        Self { data: BASE64.encode(bytes), mime_type: mime_type.into(), ..Self::default() }
    }

    /// Converts to an embedded resource, for dialects without audio.
    fn as_embedded(&self) -> EmbeddedResource {
        EmbeddedResource {
            resource: ResourceContents {
                // A resource needs a URI, and two audio blocks in one result need different ones.
                uri: format!("embedded:audio/{:016x}", fingerprint(self.data.as_bytes())),
                mime_type: Some(self.mime_type.clone()),
                body: ResourceBody::Blob(self.data.clone()),
                ..ResourceContents::default()
            },
            annotations: self.annotations.clone(),
            meta: self.meta.clone(),
            rest: self.rest.clone(),
        }
    }
}

impl Resource {
    /// Converts to text, for dialects without resource links.
    fn as_text(&self) -> TextContent {
        let mut text = format!("{} — {}", self.name, self.uri);
        if let Some(description) = &self.description {
            text.push('\n');
            text.push_str(description);
        }
        TextContent { text, annotations: self.annotations.clone(), ..TextContent::default() }
    }
}

/// Returns a hash that distinguishes byte strings (FNV-1a); it is not cryptographic.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
