//! The part of a registry that a caller may see.

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_config::ServerName;

use super::build::join_instructions;
use super::{HubRegistry, HubToolEntry, NamedMap, RegistryEntry};
use crate::access::{AccessItem, CallerAccess};
use crate::names::ItemKind;

impl<O: Clone> HubRegistry<O> {
    /// Returns the part that a caller may see. Names and owners stay those of the whole: what a caller may not see
    /// still has them.
    pub(crate) fn restricted<'a>(
        &'a self,
        access: &Arc<CallerAccess>,
        server_of: impl Fn(&'a O) -> &'a str,
    ) -> Self {
        let decide = |server: &'a O, kind: ItemKind, name: &str| {
            access.decide(AccessItem::new(server_of(server), kind, name)).is_listed()
        };
        let has_resources = self.with_resources.iter().any(|(server, _)| may_read_any(access, server));
        let shows_tool = |tool: &'a HubToolEntry<O>| match tool.access_item(&server_of) {
            Some(item) => access.decide(item).is_listed(),
            // The hub's own tools lead to resources, and show only those that the caller may see.
            None => has_resources,
        };
        let advice = self.advice.iter().filter(|known| access.may_use_server(known.server.as_str()));
        Self {
            tools: retained(&self.tools, |_, tool| shows_tool(tool)),
            prompts: retained(&self.prompts, |_, prompt: &'a RegistryEntry<O, _>| {
                decide(&prompt.owner, ItemKind::Prompt, &prompt.upstream_name)
            }),
            resources: retained(&self.resources, |uri, resource: &'a RegistryEntry<O, _>| {
                decide(&resource.owner, ItemKind::Resource, uri)
            }),
            templates: retained(&self.templates, |text, template: &'a RegistryEntry<O, _>| {
                decide(&template.owner, ItemKind::Template, text)
            }),
            claims: self.claims.clone(),
            with_resources: self.with_resources.clone(),
            collisions: Vec::new(),
            instructions: join_instructions(advice),
            advice: Arc::default(),
            access: Some(access.clone()),
        }
    }

    /// Reports whether the caller may see an item.
    pub(crate) fn is_visible(&self, item: AccessItem<'_>) -> bool {
        self.access.as_ref().is_none_or(|access| access.decide(item).is_listed())
    }

    /// Returns the servers with resources that the caller may see.
    pub(crate) fn visible_with_resources(&self) -> impl Iterator<Item = &(ServerName, O)> {
        let is_visible =
            |server: &ServerName| self.access.as_ref().is_none_or(|access| may_read_any(access, server));
        self.with_resources.iter().filter(move |(server, _)| is_visible(server))
    }
}

fn may_read_any(access: &CallerAccess, server: &ServerName) -> bool {
    access.may_use_kind(server.as_str(), ItemKind::Resource)
}

fn retained<'a, T>(items: &'a NamedMap<T>, keep: impl Fn(&'a str, &'a T) -> bool) -> NamedMap<T> {
    let kept = items.iter().filter(|(name, item)| keep(name, item));
    kept.map(|(name, item)| (name.clone(), item.clone())).collect::<BTreeMap<_, _>>()
}
