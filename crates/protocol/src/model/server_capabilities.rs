use crate::codec::Dialect;
use crate::json::{JsonKind, JsonObject, JsonWriter, RawJson};

use super::MalformedModel;
use super::field::{ModelField as _, ObjectReader, write_rest};

/// The capabilities of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerCapabilities {
    /// The server has tools.
    pub tools: Option<ListCapability>,
    /// The server has prompts.
    pub prompts: Option<ListCapability>,
    /// The server has resources.
    pub resources: Option<ResourcesCapability>,
    /// The server completes arguments.
    pub completions: bool,
    /// The server sends log messages.
    pub logging: bool,
    /// The experimental capabilities, by name.
    pub experimental: Option<RawJson>,
    /// The supported extensions, by name.
    pub extensions: Option<RawJson>,
    /// Members that no revision defines, in order.
    pub rest: JsonObject,
}

/// The capabilities of a server for a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListCapability {
    /// The server sends `list_changed` notifications.
    pub list_changed: bool,
}

/// The capabilities of a server for resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourcesCapability {
    /// The server accepts resource subscriptions.
    pub subscribe: bool,
    /// The server sends `list_changed` notifications.
    pub list_changed: bool,
}

const TYPED: &[&str] =
    &["experimental", "logging", "completions", "prompts", "resources", "tools", "extensions"];

impl ServerCapabilities {
    /// Reads the object. A capability is declared by an object; any other value declares nothing.
    ///
    /// # Errors
    /// The value is not an object, or two members have one name.
    pub fn read(raw: &RawJson) -> Result<Self, MalformedModel> {
        let mut members = ObjectReader::open(raw)?.0;
        let mut declared = |key: &str| members.take(key).filter(|raw| raw.kind() == JsonKind::Object);
        let list = |raw: RawJson| ListCapability { list_changed: is_set(&raw, "listChanged") };
        Ok(Self {
            tools: declared("tools").map(list),
            prompts: declared("prompts").map(list),
            resources: declared("resources").map(|raw| ResourcesCapability {
                subscribe: is_set(&raw, "subscribe"),
                list_changed: is_set(&raw, "listChanged"),
            }),
            completions: declared("completions").is_some(),
            logging: declared("logging").is_some(),
            experimental: declared("experimental").and_then(|raw| objects_of(&raw)),
            extensions: declared("extensions").and_then(|raw| objects_of(&raw)),
            rest: members,
        })
    }

    /// Writes the object in a dialect.
    pub fn write(&self, dialect: &Dialect, writer: &mut JsonWriter) {
        writer.open_object();
        self.experimental.write_field("experimental", dialect, writer);
        if self.logging {
            writer.member("logging", &RawJson::EMPTY_OBJECT);
        }
        if self.completions && dialect.completions_flag {
            writer.member("completions", &RawJson::EMPTY_OBJECT);
        }
        if let Some(prompts) = self.prompts {
            write_flags("prompts", &[("listChanged", prompts.list_changed)], writer);
        }
        if let Some(resources) = self.resources {
            let flags = [("subscribe", resources.subscribe), ("listChanged", resources.list_changed)];
            write_flags("resources", &flags, writer);
        }
        if let Some(tools) = self.tools {
            write_flags("tools", &[("listChanged", tools.list_changed)], writer);
        }
        if dialect.extensions {
            self.extensions.write_field("extensions", dialect, writer);
        }
        write_rest(&self.rest, TYPED, writer);
        writer.close_object();
    }
}

/// Returns an object without the members that are no objects, which clients reject together with all others.
fn objects_of(raw: &RawJson) -> Option<RawJson> {
    let members = raw.members().ok()?;
    let is_object = |raw: &RawJson| raw.kind() == JsonKind::Object;
    if members.iter().all(|(_, value)| is_object(value)) {
        return Some(raw.clone());
    }
    let kept = members.iter().filter(|(_, value)| is_object(value));
    Some(kept.map(|(key, value)| (key.clone(), value.clone())).collect::<JsonObject>().to_raw())
}

fn write_flags(key: &'static str, flags: &[(&'static str, bool)], writer: &mut JsonWriter) {
    writer.plain_key(key);
    writer.open_object();
    for (flag, _) in flags.iter().filter(|(_, set)| *set) {
        writer.member(flag, &RawJson::TRUE);
    }
    writer.close_object();
}

/// Reports whether a member of an object is `true`.
pub(super) fn is_set(object: &RawJson, key: &str) -> bool {
    object.members().is_ok_and(|members| members.get(key).is_some_and(|raw| raw.as_str() == "true"))
}
