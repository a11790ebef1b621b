use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{JsonObject, JsonWriter, RawJson};

/// A request for completions of a prompt argument or a resource template variable.
#[derive(Clone, Debug)]
pub struct CompletionRequest {
    pub(super) params: JsonObject,
    pub(super) invalid_reason: Option<Box<str>>,
}

impl CompletionRequest {
    /// Completes the beginning of a value for an argument of a prompt.
    pub fn prompt(name: impl Into<String>, argument: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new("ref/prompt", "name", &name.into(), &argument.into(), &value.into())
    }

    /// Completes the beginning of a value for a variable of a resource template.
    pub fn template(uri: impl Into<String>, variable: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new("ref/resource", "uri", &uri.into(), &variable.into(), &value.into())
    }

    /// Sets the arguments that are already resolved, a JSON object of strings; servers before 2025-06-18 ignore
    /// them.
    #[must_use]
    pub fn context(mut self, arguments: impl Into<RawJson>) -> Self {
        let arguments = arguments.into();
        if arguments.kind() != JsonKind::Object {
            self.invalid_reason = Some("the context of a completion must be a JSON object".into());
        }
        self.params.set("context", object(&[("arguments", arguments)]));
        self
    }

    fn new(kind: &str, member: &'static str, name: &str, argument: &str, value: &str) -> Self {
        let mut params = JsonObject::new();
        params.set("ref", object(&[("type", RawJson::from_text(kind)), (member, RawJson::from_text(name))]));
        let argument = [("name", RawJson::from_text(argument)), ("value", RawJson::from_text(value))];
        params.set("argument", object(&argument));
        Self { params, invalid_reason: None }
    }
}

fn object(members: &[(&'static str, RawJson)]) -> RawJson {
    let mut writer = JsonWriter::with_capacity(64);
    writer.open_object();
    for (key, value) in members {
        writer.member(key, value);
    }
    writer.close_object();
    writer.into_raw()
}
