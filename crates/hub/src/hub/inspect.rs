//! What servers offer through the hub, for its operator.

use std::sync::Arc;

use super::{Hub, ManageError, RegistrySnapshot};
use crate::registry::ToolTarget;
use crate::upstream::Upstream;

/// An item that a server offers through the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferedItem {
    /// The name by which clients use it, or the URI of a resource.
    pub name: String,
    /// Its name at the server.
    pub upstream_name: String,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Its description, if it has one.
    pub description: Option<String>,
    /// The bytes that describe it to a model: of a tool the name, the description and the schema of the arguments.
    pub definition_bytes: usize,
}

/// The items that a server offers through the hub, for all callers together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferedItems {
    /// The tools.
    pub tools: Vec<OfferedItem>,
    /// The prompts.
    pub prompts: Vec<OfferedItem>,
    /// The resources and resource templates.
    pub resources: Vec<OfferedItem>,
    /// The instructions of the server for models.
    pub instructions: Option<String>,
}

impl Hub {
    /// Returns the items that a server offers through the hub. What it offers to single users is not among them.
    ///
    /// # Errors
    /// There is no such server.
    pub fn offered_items(&self, name: &str) -> Result<OfferedItems, ManageError> {
        let server = self.find_server(name)?;
        let registry = self.inner.registry();
        Ok(OfferedItems {
            tools: tools_of(&registry, |owner| Arc::ptr_eq(owner, &server)).map(|(_, tool)| tool).collect(),
            prompts: prompts_of(&registry, &server),
            resources: resources_of(&registry, &server),
            instructions: server.known_server().and_then(|known| known.instructions.clone()),
        })
    }

    /// Returns every tool that clients can list, each with its server.
    pub fn offered_tools(&self) -> Vec<(String, OfferedItem)> {
        tools_of(&self.inner.registry(), |_| true)
            .map(|(server, tool)| (server.name().to_string(), tool))
            .collect()
    }
}

fn tools_of<'a>(
    registry: &'a RegistrySnapshot,
    is_meant: impl Fn(&Arc<Upstream>) -> bool + 'a,
) -> impl Iterator<Item = (&'a Arc<Upstream>, OfferedItem)> {
    registry.tools.iter().filter_map(move |(name, entry)| {
        let (server, upstream_name) = match &entry.target {
            ToolTarget::Upstream(server, upstream_name) => (server, upstream_name.to_string()),
            ToolTarget::Login(server) => (server, name.to_string()),
            ToolTarget::ListResources | ToolTarget::ReadResource => return None,
        };
        if !is_meant(server) {
            return None;
        }
        let tool = entry.tool();
        let description = tool.description.clone();
        let definition_bytes =
            name.len() + description.as_ref().map_or(0, String::len) + tool.input_schema.as_str().len();
        let title = tool.title.clone();
        Some((
            server,
            OfferedItem { name: name.to_string(), upstream_name, title, description, definition_bytes },
        ))
    })
}

fn prompts_of(registry: &RegistrySnapshot, server: &Arc<Upstream>) -> Vec<OfferedItem> {
    let owned = registry.prompts.iter().filter(|(_, entry)| Arc::ptr_eq(&entry.owner, server));
    owned
        .map(|(name, entry)| OfferedItem {
            name: name.to_string(),
            upstream_name: entry.upstream_name.to_string(),
            title: entry.item.title.clone(),
            description: entry.item.description.clone(),
            definition_bytes: 0,
        })
        .collect()
}

fn resources_of(registry: &RegistrySnapshot, server: &Arc<Upstream>) -> Vec<OfferedItem> {
    let owned = registry.resources.iter().filter(|(_, entry)| Arc::ptr_eq(&entry.owner, server));
    let listed = owned.map(|(uri, entry)| OfferedItem {
        name: uri.to_string(),
        upstream_name: entry.item.name.clone(),
        title: entry.item.title.clone(),
        description: entry.item.description.clone(),
        definition_bytes: 0,
    });
    let owned = registry.templates.iter().filter(|(_, entry)| Arc::ptr_eq(&entry.owner, server));
    let templates = owned.map(|(uri, entry)| OfferedItem {
        name: uri.to_string(),
        upstream_name: entry.item.name.clone(),
        title: entry.item.title.clone(),
        description: entry.item.description.clone(),
        definition_bytes: 0,
    });
    listed.chain(templates).collect()
}
