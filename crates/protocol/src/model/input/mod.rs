//! Input requests of a server to its client during a call: form and URL elicitation, sampling, roots.

mod form;
mod response;
mod sampling;

use crate::codec::Dialect;
use crate::era::unknown_method;
use crate::json::{JsonKind, JsonObject, JsonWriter, RawJson};
use crate::refusal::Refusal;
use crate::revision::Revision;
use crate::shorten::shorten;

use super::ClientCapabilities;
use super::field::write_rest;

pub use self::response::{
    CreateMessageResult, ElicitAction, ElicitResult, InputResponse, InvalidInputResponse, Root,
};
pub use self::sampling::{CreateMessageRequest, ToolChoice};

/// An input request to the client.
#[derive(Clone, Debug, PartialEq)]
pub enum InputRequest {
    /// A form for the user.
    Form(FormElicitRequest),
    /// A URL that the user should open.
    Url(UrlElicitRequest),
    /// A sampling request to the client's model.
    Sampling(CreateMessageRequest),
    /// A request for the client's roots.
    Roots,
}

/// A form for the user.
#[derive(Clone, Debug, PartialEq)]
pub struct FormElicitRequest {
    /// What the user reads above the form.
    pub message: String,
    /// The form: the JSON Schema of a flat object.
    pub schema: RawJson,
    /// Further parameters, `_meta` included, in order.
    pub rest: JsonObject,
}

/// A URL that the user should open.
#[derive(Clone, Debug, PartialEq)]
pub struct UrlElicitRequest {
    /// What the user reads before agreeing.
    pub message: String,
    /// The URL.
    pub url: String,
    /// Further parameters, `_meta` included, in order.
    pub rest: JsonObject,
}

/// An input request that a revision cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision {revision} has no {feature}")]
pub struct UnsupportedFeature {
    /// What the revision lacks.
    pub feature: &'static str,
    /// The revision.
    pub revision: Revision,
}

/// Makes parameters readable for the parsers of every language.
fn readable(params: JsonObject) -> Result<JsonObject, Refusal> {
    let raw = params.to_raw();
    let problem = || Refusal::INVALID_PARAMS.with_message("a number in the parameters is too large");
    let readable = raw.without_lone_surrogates().ok_or_else(problem)?;
    if readable == raw { Ok(params) } else { readable.members().map_err(|_| problem()) }
}

impl InputRequest {
    /// Creates an elicitation of mode `form`.
    pub fn form(message: impl Into<String>, schema: RawJson) -> Self {
        Self::Form(FormElicitRequest { message: message.into(), schema, rest: JsonObject::new() })
    }

    /// Creates an elicitation of mode `url`.
    pub fn url(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self::Url(UrlElicitRequest { message: message.into(), url: url.into(), rest: JsonObject::new() })
    }

    /// Reads an input request from its method and its parameters, in either era. Lone surrogates are replaced, since
    /// some clients cannot parse them.
    ///
    /// # Errors
    /// [`Refusal::METHOD_NOT_FOUND`] if the method is not one of an input request, [`Refusal::INVALID_PARAMS`] if the
    /// parameters are malformed, or have a number that does not fit a double.
    pub fn read(method: &str, params: JsonObject) -> Result<Self, Refusal> {
        let mut params = readable(params)?;
        let text = |params: &mut JsonObject, key: &str| {
            let raw = params.take(key);
            let problem = || Refusal::INVALID_PARAMS.with_message(format!("`{key}` must be a string"));
            raw.as_ref().and_then(RawJson::as_text).map(Into::into).ok_or_else(problem)
        };
        match method {
            "roots/list" => Ok(Self::Roots),
            "sampling/createMessage" => Ok(Self::Sampling(CreateMessageRequest { params })),
            "elicitation/create" => {
                let mode = params.take("mode");
                match mode.as_ref().and_then(RawJson::as_text).as_deref() {
                    Some("url") => Ok(Self::Url(UrlElicitRequest {
                        message: text(&mut params, "message")?,
                        url: text(&mut params, "url")?,
                        rest: params,
                    })),
                    Some("form") | None => Ok(Self::Form(FormElicitRequest {
                        message: text(&mut params, "message")?,
                        schema: params
                            .take("requestedSchema")
                            .filter(|schema| schema.kind() == JsonKind::Object)
                            .ok_or_else(|| {
                                Refusal::INVALID_PARAMS.with_message("`requestedSchema` must be an object")
                            })?,
                        rest: params,
                    })),
                    Some(other) => Err(Refusal::INVALID_PARAMS
                        .with_message(format!("elicitation has no mode `{}`", shorten(other)))),
                }
            }
            _ => Err(unknown_method(method)),
        }
    }

    /// Returns the method of the input request.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::Form(_) | Self::Url(_) => "elicitation/create",
            Self::Sampling(_) => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Writes the input request in its modern form, within a result.
    pub fn write_input_request(&self, writer: &mut JsonWriter) {
        writer.open_object();
        writer.plain_key("method");
        writer.string(self.method());
        writer.plain_key("params");
        match self {
            Self::Form(form) => form.write(&form.schema, Dialect::NEWEST, writer),
            Self::Url(url) => url.write(None, writer),
            Self::Sampling(sample) => {
                writer.open_object();
                sample.params.write_into(writer);
                writer.close_object();
            }
            Self::Roots => writer.raw(&RawJson::EMPTY_OBJECT),
        }
        writer.close_object();
    }

    /// Returns the capabilities that the input request requires of a client, as a capabilities object.
    pub fn required_capability(&self) -> RawJson {
        let json = match self {
            Self::Form(_) => r#"{"elicitation":{"form":{}}}"#,
            Self::Url(_) => r#"{"elicitation":{"url":{}}}"#,
            Self::Sampling(sample) if sample.needs_tools() => r#"{"sampling":{"tools":{}}}"#,
            Self::Sampling(_) => r#"{"sampling":{}}"#,
            Self::Roots => r#"{"roots":{}}"#,
        };
        RawJson::from_trusted(json.into())
    }

    /// Reports whether a client has declared the required capabilities.
    pub fn is_supported_by(&self, client: &ClientCapabilities) -> bool {
        match self {
            Self::Form(_) => client.form(),
            Self::Url(_) => client.url(),
            Self::Sampling(sample) => client.sampling() && (client.sampling_tools() || !sample.needs_tools()),
            Self::Roots => client.roots(),
        }
    }

    /// Omits parameters that a client has not declared support for, where the input request makes sense without them.
    #[must_use]
    pub fn adapted_to(self, client: &ClientCapabilities, dialect: &Dialect) -> Self {
        match self {
            // Before there was a capability for it, every client accepted `includeContext`.
            Self::Sampling(sample) if dialect.sampling_tools && !client.sampling_context() => {
                Self::Sampling(sample.without_context())
            }
            question => question,
        }
    }

    /// Checks that a dialect can express the input request.
    ///
    /// # Errors
    /// The dialect cannot express it.
    pub fn check_supported(&self, dialect: &Dialect) -> Result<(), UnsupportedFeature> {
        self.to_legacy(dialect, String::new).map(drop)
    }

    /// Returns the parameters of the request that a legacy server sends.
    ///
    /// `mint_elicitation_id` creates an unguessable identifier; it is called only where one is needed.
    ///
    /// # Errors
    /// The dialect cannot express the input request.
    pub fn to_legacy(
        &self,
        dialect: &Dialect,
        mint_elicitation_id: impl FnOnce() -> String,
    ) -> Result<RawJson, UnsupportedFeature> {
        let lacks = |feature| UnsupportedFeature { feature, revision: dialect.revision() };
        let mut writer = JsonWriter::with_capacity(256);
        match self {
            Self::Form(_) if !dialect.elicitation => return Err(lacks("elicitation")),
            Self::Form(form) if dialect.rich_forms => form.write(&form.schema, dialect, &mut writer),
            Self::Form(form) => {
                let schema = form::simplified(&form.schema).map_err(lacks)?;
                form.write(&schema, dialect, &mut writer);
            }
            Self::Url(_) if !dialect.elicitation_modes => return Err(lacks("URL elicitation")),
            Self::Url(url) => url.write(dialect.elicitation_id.then(mint_elicitation_id), &mut writer),
            Self::Sampling(sample) => return sample.for_dialect(dialect).map_err(lacks),
            Self::Roots => return Ok(RawJson::EMPTY_OBJECT),
        }
        Ok(writer.into_raw())
    }
}

impl FormElicitRequest {
    fn write(&self, schema: &RawJson, dialect: &Dialect, writer: &mut JsonWriter) {
        writer.open_object();
        if dialect.elicitation_modes {
            writer.plain_key("mode");
            writer.string("form");
        }
        writer.plain_key("message");
        writer.string(&self.message);
        writer.member("requestedSchema", schema);
        write_rest(&self.rest, &["mode", "message", "requestedSchema"], writer);
        writer.close_object();
    }
}

impl UrlElicitRequest {
    fn write(&self, elicitation_id: Option<String>, writer: &mut JsonWriter) {
        writer.open_object();
        writer.plain_key("mode");
        writer.string("url");
        writer.plain_key("message");
        writer.string(&self.message);
        writer.plain_key("url");
        writer.string(&self.url);
        if let Some(id) = elicitation_id {
            writer.plain_key("elicitationId");
            writer.string(&id);
        }
        // An identifier belongs to one hop, so a carried one is never repeated.
        write_rest(&self.rest, &["mode", "message", "url", "elicitationId"], writer);
        writer.close_object();
    }
}
