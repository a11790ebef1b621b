use crate::codec::Dialect;
use crate::json::{JsonKind, JsonObject, JsonWriter, MalformedJson, RawJson};
use crate::revision::{Era, Revision};

use super::server_capabilities::is_set;

/// The declared capabilities of a client.
///
/// The revision decides which members have a meaning; no capability is ever assumed because of the revision alone.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientCapabilities {
    /// The object, as the client wrote it.
    pub raw: RawJson,
    flags: u8,
    era: Era,
    extensions: Option<Box<JsonObject>>,
}

const FORM: u8 = 1;
const URL: u8 = 1 << 1;
const SAMPLING: u8 = 1 << 2;
const SAMPLING_TOOLS: u8 = 1 << 3;
const SAMPLING_CONTEXT: u8 = 1 << 4;
const ROOTS: u8 = 1 << 5;
const ROOTS_LIST_CHANGED: u8 = 1 << 6;

/// A client without capabilities.
impl Default for ClientCapabilities {
    fn default() -> Self {
        Self { raw: RawJson::EMPTY_OBJECT, flags: 0, era: Era::Modern, extensions: None }
    }
}

impl ClientCapabilities {
    /// Reads the capabilities of a client of a revision. An object declares a capability; any other value declares
    /// nothing.
    ///
    /// # Errors
    /// The value is not an object, or two members of one object have one name.
    pub fn read(raw: &RawJson, revision: Revision) -> Result<Self, MalformedJson> {
        let mut read = Self { raw: raw.clone(), flags: 0, era: revision.era(), extensions: None };
        // What most modern clients send with every request.
        if raw.as_str() == "{}" {
            return Ok(read);
        }
        let members = raw.members()?;
        let dialect = Dialect::of(revision);
        let object = |key: &str| members.get(key).filter(|raw| raw.kind() == JsonKind::Object);
        if let Some(elicitation) = object("elicitation").filter(|_| dialect.elicitation) {
            read.flags |= elicitation_flags(&elicitation.members()?, dialect);
        }
        if let Some(sampling) = object("sampling") {
            let sampling = sampling.members()?;
            let declares = |key: &str| dialect.sampling_tools && declares(&sampling, key);
            read.set(SAMPLING, true);
            read.set(SAMPLING_TOOLS, declares("tools"));
            read.set(SAMPLING_CONTEXT, declares("context"));
        }
        if let Some(roots) = object("roots") {
            read.set(ROOTS, true);
            read.set(ROOTS_LIST_CHANGED, read.era == Era::Legacy && is_set(roots, "listChanged"));
        }
        if let Some(extensions) = object("extensions").filter(|_| dialect.extensions) {
            read.extensions = Some(Box::new(extensions.members()?));
        }
        Ok(read)
    }

    /// Copies the object out of its message, so that keeping it does not retain the whole message.
    #[must_use]
    pub fn into_owned_buffer(self) -> Self {
        let raw = RawJson::from_trusted(self.raw.as_str().into());
        // Every extension was a part of the object, and the copy reads as the original did.
        let extensions = self.extensions.and_then(|_| raw.members().ok()?.get("extensions")?.members().ok());
        Self { raw, extensions: extensions.map(Box::new), ..self }
    }

    /// Reports whether the client supports form elicitation.
    pub fn form(&self) -> bool {
        self.has(FORM)
    }

    /// Reports whether the client supports URL elicitation.
    pub fn url(&self) -> bool {
        self.has(URL)
    }

    /// Reports whether the client supports sampling.
    pub fn sampling(&self) -> bool {
        self.has(SAMPLING)
    }

    /// Reports whether the client supports sampling with tools.
    pub fn sampling_tools(&self) -> bool {
        self.has(SAMPLING_TOOLS)
    }

    /// Reports whether the client supports `includeContext` in sampling.
    pub fn sampling_context(&self) -> bool {
        self.has(SAMPLING_CONTEXT)
    }

    /// Reports whether the client supports roots.
    pub fn roots(&self) -> bool {
        self.has(ROOTS)
    }

    /// Reports whether the client sends `notifications/roots/list_changed`.
    pub fn roots_list_changed(&self) -> bool {
        self.has(ROOTS_LIST_CHANGED)
    }

    /// Returns the settings of an extension, if the client declares it.
    pub fn extension(&self, id: &str) -> Option<&RawJson> {
        self.extensions.as_ref()?.get(id)
    }

    /// Returns the capabilities without one extension.
    #[must_use]
    pub fn without_extension(&self, id: &str) -> Self {
        let Some(mut extensions) = self.extensions.as_deref().cloned() else { return self.clone() };
        extensions.take(id);
        let mut members = self.raw.members().unwrap_or_default();
        members.set("extensions", extensions.to_raw());
        Self { raw: members.to_raw(), extensions: Some(Box::new(extensions)), ..self.clone() }
    }

    /// Converts the capabilities to their modern form.
    ///
    /// Members that the client's revision does not define or that the modern era has dropped are omitted; members
    /// outside of the protocol are kept.
    pub fn to_modern(&self) -> RawJson {
        if self.era == Era::Modern {
            return self.raw.clone();
        }
        let mut writer = JsonWriter::with_capacity(self.raw.as_str().len() + 32);
        writer.open_object();
        for (key, value) in self.raw.members().unwrap_or_default().iter() {
            let (known, parts): (bool, &[(&'static str, bool)]) = match &**key {
                "roots" => (self.roots(), &[]),
                "sampling" => (
                    self.sampling(),
                    &[("tools", self.sampling_tools()), ("context", self.sampling_context())],
                ),
                "elicitation" => (self.form() || self.url(), &[("form", self.form()), ("url", self.url())]),
                "tasks" => (false, &[]),
                "extensions" if self.extensions.is_none() => (false, &[]),
                _ => {
                    writer.member(key, value);
                    continue;
                }
            };
            if known {
                write_parts(key, parts, &mut writer);
            }
        }
        writer.close_object();
        writer.into_raw()
    }

    /// Declares support for form elicitation.
    #[must_use]
    pub fn with_form(&self) -> Self {
        self.with("elicitation", Some(("form", RawJson::EMPTY_OBJECT)))
    }

    /// Declares support for URL elicitation.
    #[must_use]
    pub fn with_url(&self) -> Self {
        self.with("elicitation", Some(("url", RawJson::EMPTY_OBJECT)))
    }

    /// Declares support for sampling.
    #[must_use]
    pub fn with_sampling(&self) -> Self {
        self.with("sampling", None)
    }

    /// Declares support for sampling with tools.
    #[must_use]
    pub fn with_sampling_tools(&self) -> Self {
        self.with("sampling", Some(("tools", RawJson::EMPTY_OBJECT)))
    }

    /// Declares support for roots, and for notifications of their changes where the revision has them.
    #[must_use]
    pub fn with_roots(&self) -> Self {
        self.with("roots", Some(("listChanged", RawJson::TRUE)))
    }

    fn with(&self, capability: &'static str, part: Option<(&'static str, RawJson)>) -> Self {
        let mut members = self.raw.members().unwrap_or_default();
        let declared = members.get(capability).and_then(|raw| raw.members().ok());
        let mut declared = declared.unwrap_or_default();
        if let Some((part, value)) = part {
            declared.set(part, value);
        }
        members.set(capability, declared.to_raw());
        // The text is an object of objects by construction, so it parses.
        Self::read(&members.to_raw(), Revision::NEWEST).unwrap_or_default()
    }

    /// Converts the capabilities for a server of a revision: what the revision does not have is omitted.
    pub fn for_revision(&self, revision: Revision) -> RawJson {
        if self.raw == RawJson::EMPTY_OBJECT {
            return RawJson::EMPTY_OBJECT;
        }
        let dialect = Dialect::of(revision);
        let is_legacy = revision.era() == Era::Legacy;
        let mut writer = JsonWriter::with_capacity(self.raw.as_str().len() + 32);
        writer.open_object();
        for (key, value) in self.raw.members().unwrap_or_default().iter() {
            match &**key {
                "roots" if self.roots() => {
                    writer.plain_key("roots");
                    writer.open_object();
                    if is_legacy && is_set(value, "listChanged") {
                        writer.member("listChanged", &RawJson::TRUE);
                    }
                    writer.close_object();
                }
                "sampling" if self.sampling() => {
                    let tools = dialect.sampling_tools && self.sampling_tools();
                    let context = dialect.sampling_tools && self.sampling_context();
                    write_parts("sampling", &[("tools", tools), ("context", context)], &mut writer);
                }
                "elicitation" if dialect.elicitation_modes && (self.form() || self.url()) => {
                    let parts = [("form", self.form()), ("url", self.url())];
                    write_parts("elicitation", &parts, &mut writer);
                }
                // Before there were modes, every elicitation was a form.
                "elicitation" if dialect.elicitation && self.form() => {
                    writer.member("elicitation", &RawJson::EMPTY_OBJECT);
                }
                "extensions" if dialect.extensions && value.kind() == JsonKind::Object => {
                    writer.member(key, value);
                }
                "roots" | "sampling" | "elicitation" | "extensions" | "tasks" => {}
                _ => writer.member(key, value),
            }
        }
        writer.close_object();
        writer.into_raw()
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn set(&mut self, flag: u8, on: bool) {
        if on {
            self.flags |= flag;
        }
    }
}

/// Forms come first: an object that names no mode means them, and so does every object where there are no modes.
fn elicitation_flags(elicitation: &JsonObject, dialect: &Dialect) -> u8 {
    let url = dialect.elicitation_modes && declares(elicitation, "url");
    let form = !url || declares(elicitation, "form");
    match (form, url) {
        (true, true) => FORM | URL,
        (false, _) => URL,
        (true, false) => FORM,
    }
}

fn declares(members: &JsonObject, key: &str) -> bool {
    members.get(key).is_some_and(|raw| raw.kind() == JsonKind::Object)
}

fn write_parts(key: &str, parts: &[(&'static str, bool)], writer: &mut JsonWriter) {
    writer.key(key);
    writer.open_object();
    for (part, _) in parts.iter().filter(|(_, declared)| *declared) {
        writer.member(part, &RawJson::EMPTY_OBJECT);
    }
    writer.close_object();
}
