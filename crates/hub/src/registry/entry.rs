use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{Prompt, Resource, ResourceTemplate, Tool};
use trunkline_protocol::{RawJson, Revision};
use trunkline_server::listing::RenderedItem;

use crate::access::AccessItem;
use crate::names::ItemKind;

/// The name of the tool by which a user logs in, at its server.
pub(crate) const LOGIN_TOOL: &str = "login";

/// The tool member for task support; tasks are not forwarded.
const EXECUTION_KEY: &str = "execution";

/// The schema key of an argument that is mirrored in an HTTP header.
const MIRROR_HEADER_KEY: &str = "x-mcp-header";

/// The name of a tool at its server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UpstreamName {
    text: Box<str>,
    /// The same as JSON, written once for all calls.
    pub(crate) json: RawJson,
}

impl From<&str> for UpstreamName {
    fn from(name: &str) -> Self {
        Self { text: name.into(), json: RawJson::from_text(name) }
    }
}

impl Deref for UpstreamName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// The target of an exposed tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToolTarget<O> {
    /// A tool of a server, by its name there.
    Upstream(O, UpstreamName),
    /// The login of the caller's user to a server.
    Login(O),
    /// The list of all resources, for agents that know only tools.
    ListResources,
    /// One resource, for agents that know only tools.
    ReadResource,
}

/// An exposed tool.
#[derive(Debug)]
pub(crate) struct HubToolEntry<O> {
    pub(crate) target: ToolTarget<O>,
    tool: Tool,
    mirrored_params: Option<Arc<MirroredParams>>,
    rendered: RenderedItem,
}

/// Reports whether a tool can only be called as a task of revision 2025-11-25, which is not forwarded.
pub(crate) fn requires_task(tool: &Tool) -> bool {
    let execution = tool.rest.get(EXECUTION_KEY).and_then(|execution| execution.members().ok());
    execution.and_then(|execution| execution.text("taskSupport")).is_some_and(|support| support == "required")
}

impl<O> HubToolEntry<O> {
    pub(crate) fn new(target: ToolTarget<O>, mut tool: Tool) -> Self {
        tool.rest.take(EXECUTION_KEY);
        let mirrored = tool.input_schema.as_str().contains(MIRROR_HEADER_KEY).then(|| {
            let schema: Value = tool.input_schema.decode().unwrap_or_default();
            MirroredParams::from_schema(&schema).unwrap_or_else(|_| {
                // A conforming client would drop the tool because of an invalid `x-mcp-header`.
                tool.input_schema = without_mirror_keys(schema).into();
                MirroredParams::default()
            })
        });
        let mirrored = mirrored.filter(|mirrored| !mirrored.is_empty()).map(Arc::new);
        Self { target, tool, mirrored_params: mirrored, rendered: RenderedItem::default() }
    }

    pub(crate) fn mirrored_params(&self) -> Option<Arc<MirroredParams>> {
        self.mirrored_params.clone()
    }

    pub(crate) fn list_item(&self, revision: Revision) -> RawJson {
        self.rendered.get(revision, |dialect, writer| self.tool.write(dialect, writer))
    }

    /// Returns the tool as an item of its server; `None` for a tool of the hub itself.
    pub(crate) fn access_item<'a>(&'a self, server_of: impl Fn(&'a O) -> &'a str) -> Option<AccessItem<'a>> {
        let (server, name) = match &self.target {
            ToolTarget::Upstream(server, name) => (server, &**name),
            ToolTarget::Login(server) => (server, LOGIN_TOOL),
            ToolTarget::ListResources | ToolTarget::ReadResource => return None,
        };
        // Of two annotations that contradict each other, the one that grants less counts.
        let is_read_only = self
            .tool
            .annotations
            .as_ref()
            .is_some_and(|hints| hints.read_only == Some(true) && hints.destructive != Some(true));
        Some(AccessItem::new(server_of(server), ItemKind::Tool, name).read_only(is_read_only))
    }

    pub(crate) fn tool(&self) -> &Tool {
        &self.tool
    }
}

/// Removes the `x-mcp-header` keys at any depth.
fn without_mirror_keys(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(key, _)| key != MIRROR_HEADER_KEY);
            Value::Object(kept.map(|(key, value)| (key, without_mirror_keys(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_mirror_keys).collect()),
        other => other,
    }
}

/// An exposed prompt, resource or template, with its owner.
#[derive(Debug)]
pub(crate) struct RegistryEntry<O, T> {
    pub(crate) owner: O,
    /// Its name at the server.
    pub(crate) upstream_name: Arc<str>,
    pub(crate) item: T,
    rendered: RenderedItem,
}

impl<O, T> RegistryEntry<O, T> {
    pub(crate) fn new(owner: O, real: impl Into<Arc<str>>, item: T) -> Self {
        Self { owner, upstream_name: real.into(), item, rendered: RenderedItem::default() }
    }
}

macro_rules! listed {
    ($($item:ty),*) => {
        $(impl<O> RegistryEntry<O, $item> {
            pub(crate) fn list_item(&self, revision: Revision) -> RawJson {
                self.rendered.get(revision, |dialect, writer| self.item.write(dialect, writer))
            }
        })*
    };
}

listed!(Prompt, Resource, ResourceTemplate);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(schema: &Value) -> HubToolEntry<()> {
        let mut tool = Tool::new("t", schema.into());
        tool.rest.set(EXECUTION_KEY, RawJson::parse(r#"{"taskSupport":"optional"}"#).unwrap());
        HubToolEntry::new(ToolTarget::Upstream((), "t".into()), tool)
    }

    #[test]
    fn invalid_mirror_header_keys_are_removed_and_valid_ones_stay() {
        let good =
            json!({ "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": "A" } } });
        let bad =
            json!({ "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": "a b" } } });
        let valid = entry(&good);
        assert_eq!(valid.mirrored_params().unwrap().iter().next().unwrap().header(), "Mcp-Param-A");
        assert!(valid.list_item(Revision::NEWEST).as_str().contains(MIRROR_HEADER_KEY));
        let stripped = entry(&bad);
        assert!(stripped.mirrored_params().is_none());
        assert!(!stripped.list_item(Revision::NEWEST).as_str().contains(MIRROR_HEADER_KEY));
    }

    #[test]
    fn task_support_of_a_tool_is_not_forwarded() {
        let listed = entry(&json!({ "type": "object" })).list_item(Revision::V2025_11_25);
        assert_eq!(listed.as_str(), r#"{"name":"t","inputSchema":{"type":"object"}}"#);
    }
}
