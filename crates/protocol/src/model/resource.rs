use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::codec::Dialect;
use crate::json::{JsonObject, JsonWriter, RawJson};

use super::field::{ModelField as _, ModelValue, ObjectReader, write_entity_meta, write_rest};
use super::{Annotations, Icon, MalformedModel};

object! {
    /// A resource that a server offers.
    #[derive(Default)]
    struct Resource + meta {
        /// The URI by which it is read.
        uri: String => "uri",
        /// The programmatic name.
        name: String => "name",
        /// The display name.
        title: Option<String> => "title" if title,
        /// What it is, for the model to read.
        description: Option<String> => "description",
        /// The media type, if it is known.
        mime_type: Option<String> => "mimeType",
        /// The size of the raw content in bytes, if it is known.
        size: Option<u64> => "size",
        /// Hints about its use.
        annotations: Option<Annotations> => "annotations",
        /// The icons.
        icons: Vec<Icon> => "icons" if icons,
    }
}

impl Resource {
    /// Creates a resource from its URI and name.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), ..Self::default() }
    }
}

object! {
    /// A family of resources with URIs that follow a pattern.
    #[derive(Default)]
    struct ResourceTemplate + meta {
        /// The pattern of the URIs, in the form of RFC 6570.
        uri_template: String => "uriTemplate",
        /// The programmatic name.
        name: String => "name",
        /// The display name.
        title: Option<String> => "title" if title,
        /// What these resources are, for the model to read.
        description: Option<String> => "description",
        /// The media type, if they all have the same.
        mime_type: Option<String> => "mimeType",
        /// Hints about their use.
        annotations: Option<Annotations> => "annotations",
        /// The icons.
        icons: Vec<Icon> => "icons" if icons,
    }
}

impl ResourceTemplate {
    /// Creates a resource template from the pattern of its URIs and its name.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri_template: uri_template.into(), name: name.into(), ..Self::default() }
    }
}

/// The contents of a resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResourceContents {
    /// The resource's URI.
    pub uri: String,
    /// The media type, if it is known.
    pub mime_type: Option<String>,
    /// The content itself.
    pub body: ResourceBody,
    /// The `_meta` of the wire format.
    pub meta: Option<JsonObject>,
    /// Members that no revision defines, in order.
    pub rest: JsonObject,
}

/// The content of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Blob(String),
}

impl Default for ResourceBody {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl ResourceContents {
    /// Creates contents of text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), body: ResourceBody::Text(text.into()), ..Self::default() }
    }

    /// Creates contents of bytes.
    pub fn blob(uri: impl Into<String>, bytes: &[u8]) -> Self {
        Self { uri: uri.into(), body: ResourceBody::Blob(BASE64.encode(bytes)), ..Self::default() }
    }

    /// Sets the media type.
    #[must_use]
    pub fn mime(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Reads the object.
    ///
    /// # Errors
    /// A member is missing or has the wrong type, or there is not exactly one of `text` and `blob`.
    pub fn read(raw: &RawJson) -> Result<Self, MalformedModel> {
        let mut reader = ObjectReader::open(raw)?;
        let body = match (reader.take("text")?, reader.take("blob")?) {
            (Some(text), None) => ResourceBody::Text(text),
            (None, Some(blob)) => ResourceBody::Blob(blob),
            _ => return Err(MalformedModel::new("must have either `text` or `blob`")),
        };
        Ok(Self {
            uri: reader.take("uri")?,
            mime_type: reader.take("mimeType")?,
            body,
            meta: reader.take("_meta")?,
            rest: reader.0,
        })
    }

    /// Writes the object in a dialect.
    pub fn write(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        writer.open_object();
        self.uri.write_field("uri", dialect, writer);
        self.mime_type.write_field("mimeType", dialect, writer);
        match &self.body {
            ResourceBody::Text(text) => text.write_field("text", dialect, writer),
            ResourceBody::Blob(blob) => blob.write_field("blob", dialect, writer),
        }
        write_entity_meta(self.meta.as_ref(), dialect, writer);
        write_rest(&self.rest, &["uri", "mimeType", "text", "blob", "_meta"], writer);
        writer.close_object();
    }
}

impl ModelValue for ResourceContents {
    fn read_value(raw: &RawJson) -> Result<Self, MalformedModel> {
        Self::read(raw)
    }

    fn write_value(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        self.write(dialect, writer);
    }
}
