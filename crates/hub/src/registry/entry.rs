use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{Prompt, Resource, ResourceTemplate, Tool};
use trunkline_protocol::{Raw, Revision};
use trunkline_server::listing::Rendered;

/// A member of a tool that is about tasks, which are not carried.
const EXECUTION: &str = "execution";

/// The mark of an argument that a header repeats.
const MIRROR_MARK: &str = "x-mcp-header";

/// What a tool is called at its server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RealName {
    text: Box<str>,
    /// The same as JSON, written once for all calls.
    pub(crate) written: Raw,
}

impl From<&str> for RealName {
    fn from(name: &str) -> Self {
        Self { text: name.into(), written: Raw::from_text(name) }
    }
}

impl Deref for RealName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// What a tool on this side stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToolTarget<O> {
    /// A tool of a server, by the name that it has there.
    Upstream(O, RealName),
    /// The list of all resources, for agents that know only tools.
    ListResources,
    /// One resource, for agents that know only tools.
    ReadResource,
}

/// A tool as it is offered on this side.
#[derive(Debug)]
pub(crate) struct ToolEntry<O> {
    pub(crate) target: ToolTarget<O>,
    tool: Tool,
    mirrored: Option<Arc<MirroredParams>>,
    rendered: Rendered,
}

impl<O> ToolEntry<O> {
    pub(crate) fn new(target: ToolTarget<O>, mut tool: Tool) -> Self {
        tool.rest.take(EXECUTION);
        let mirrored = tool.input_schema.as_str().contains(MIRROR_MARK).then(|| {
            let schema: Value = tool.input_schema.decode().unwrap_or_default();
            MirroredParams::from_schema(&schema).unwrap_or_else(|_| {
                // Whoever takes such marks seriously would leave the tool out because of them.
                tool.input_schema = without_marks(schema).into();
                MirroredParams::default()
            })
        });
        let mirrored = mirrored.filter(|mirrored| !mirrored.is_empty()).map(Arc::new);
        Self { target, tool, mirrored, rendered: Rendered::default() }
    }

    pub(crate) fn mirrored(&self) -> Option<Arc<MirroredParams>> {
        self.mirrored.clone()
    }

    pub(crate) fn list_item(&self, revision: Revision) -> Raw {
        self.rendered.get(revision, |dialect, writer| self.tool.write(dialect, writer))
    }

    pub(crate) fn described(&self) -> &Tool {
        &self.tool
    }
}

/// Removes the marks of mirrored arguments wherever they are.
fn without_marks(schema: Value) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(key, _)| key != MIRROR_MARK);
            Value::Object(kept.map(|(key, value)| (key, without_marks(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_marks).collect()),
        other => other,
    }
}

/// Something else that is offered, with where it comes from.
#[derive(Debug)]
pub(crate) struct Entry<O, T> {
    pub(crate) owner: O,
    /// What it is called there.
    pub(crate) real: Arc<str>,
    pub(crate) item: T,
    rendered: Rendered,
}

impl<O, T> Entry<O, T> {
    pub(crate) fn new(owner: O, real: impl Into<Arc<str>>, item: T) -> Self {
        Self { owner, real: real.into(), item, rendered: Rendered::default() }
    }
}

macro_rules! listed {
    ($($item:ty),*) => {
        $(impl<O> Entry<O, $item> {
            pub(crate) fn list_item(&self, revision: Revision) -> Raw {
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

    fn entry(schema: &Value) -> ToolEntry<()> {
        let mut tool = Tool::new("t", schema.into());
        tool.rest.set(EXECUTION, Raw::parse(r#"{"taskSupport":"optional"}"#).unwrap());
        ToolEntry::new(ToolTarget::Upstream((), "t".into()), tool)
    }

    #[test]
    fn marks_that_make_no_sense_are_removed_and_others_are_kept() {
        let good =
            json!({ "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": "A" } } });
        let bad =
            json!({ "type": "object", "properties": { "a": { "type": "string", "x-mcp-header": "a b" } } });
        let kept = entry(&good);
        assert_eq!(kept.mirrored().unwrap().iter().next().unwrap().header(), "Mcp-Param-A");
        assert!(kept.list_item(Revision::NEWEST).as_str().contains(MIRROR_MARK));
        let stripped = entry(&bad);
        assert!(stripped.mirrored().is_none());
        assert!(!stripped.list_item(Revision::NEWEST).as_str().contains(MIRROR_MARK));
    }

    #[test]
    fn what_is_said_about_tasks_is_not_carried() {
        let listed = entry(&json!({ "type": "object" })).list_item(Revision::V2025_11_25);
        assert_eq!(listed.as_str(), r#"{"name":"t","inputSchema":{"type":"object"}}"#);
    }
}
