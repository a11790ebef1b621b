use trunkline_protocol::json::JsonKind;
use trunkline_protocol::{Members, Raw, Writer};

/// What is to be completed: an argument of a prompt, or a variable of a resource template.
#[derive(Clone, Debug)]
pub struct Completion {
    pub(super) params: Members,
    pub(super) fault: Option<Box<str>>,
}

impl Completion {
    /// Completes the beginning of a value for an argument of a prompt.
    pub fn prompt(name: impl Into<String>, argument: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new("ref/prompt", "name", &name.into(), &argument.into(), &value.into())
    }

    /// Completes the beginning of a value for a variable of a resource template.
    pub fn template(uri: impl Into<String>, variable: impl Into<String>, value: impl Into<String>) -> Self {
        Self::new("ref/resource", "uri", &uri.into(), &variable.into(), &value.into())
    }

    /// Says what other arguments are already, a JSON object of strings; servers before 2025-06-18 do not look at it.
    #[must_use]
    pub fn context(mut self, arguments: impl Into<Raw>) -> Self {
        let arguments = arguments.into();
        if arguments.kind() != JsonKind::Object {
            self.fault = Some("the context of a completion must be a JSON object".into());
        }
        self.params.set("context", object(&[("arguments", arguments)]));
        self
    }

    fn new(kind: &str, member: &'static str, name: &str, argument: &str, value: &str) -> Self {
        let mut params = Members::new();
        params.set("ref", object(&[("type", Raw::from_text(kind)), (member, Raw::from_text(name))]));
        let argument = [("name", Raw::from_text(argument)), ("value", Raw::from_text(value))];
        params.set("argument", object(&argument));
        Self { params, fault: None }
    }
}

fn object(members: &[(&'static str, Raw)]) -> Raw {
    let mut writer = Writer::with_capacity(64);
    writer.open_object();
    for (key, value) in members {
        writer.member(key, value);
    }
    writer.close_object();
    writer.into_raw()
}
