//! What is offered at one moment, and whose each thing is.

mod build;
mod catalogue;
mod entry;
mod resource_tools;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use trunkline_config::{ServerName, ToolRules};
use trunkline_protocol::model::{Prompt, Resource, ResourceTemplate};
use trunkline_protocol::template::UriTemplate;

pub use self::build::ResourceTools;
pub(crate) use self::catalogue::Catalogue;
pub(crate) use self::entry::{Entry, ToolEntry, ToolTarget};
use crate::names::Collision;

type Named<T> = BTreeMap<Arc<str>, Arc<T>>;

/// A snapshot, which is replaced as a whole and never changed: calls that run keep the one that they started with.
///
/// `O` is how a server is reached; nothing here depends on it.
#[derive(Debug)]
pub(crate) struct Registry<O> {
    pub(crate) tools: Named<ToolEntry<O>>,
    pub(crate) prompts: Named<Entry<O, Prompt>>,
    pub(crate) resources: Named<Entry<O, Resource>>,
    pub(crate) templates: Named<Entry<O, ResourceTemplate>>,
    /// Every template that can be matched, those that two servers have among them.
    matched: Vec<(UriTemplate, ServerName, O)>,
    /// Addresses that several servers have.
    shared: HashMap<String, Vec<ServerName>>,
    /// The servers that have resources, listed or not.
    pub(crate) with_resources: Vec<(ServerName, O)>,
    pub(crate) collisions: Vec<Collision>,
    pub(crate) instructions: Option<String>,
}

/// What one server brings into a registry.
#[derive(Clone, Debug)]
pub(crate) struct Offer<O> {
    pub(crate) server: ServerName,
    pub(crate) owner: O,
    pub(crate) rules: ToolRules,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) instructions: Option<String>,
    /// Whether its names are used as they are.
    pub(crate) keeps_names: bool,
}

/// Whose a resource is.
#[derive(Debug, PartialEq)]
pub(crate) enum Owner<'r, O> {
    /// This server's.
    One(&'r O),
    /// That cannot be told, since all of these may have it.
    Several(Vec<ServerName>),
    /// Nobody's.
    Nobody,
}

impl<O> Default for Registry<O> {
    fn default() -> Self {
        Self {
            tools: BTreeMap::new(),
            prompts: BTreeMap::new(),
            resources: BTreeMap::new(),
            templates: BTreeMap::new(),
            matched: Vec::new(),
            shared: HashMap::new(),
            with_resources: Vec::new(),
            collisions: Vec::new(),
            instructions: None,
        }
    }
}

impl<O: Clone> Registry<O> {
    /// Finds out whose a resource is: by its address, then by the templates that match it. What nobody claims is the only
    /// server's that has resources, if there is only one.
    pub(crate) fn owner_of(&self, uri: &str) -> Owner<'_, O> {
        if let Some(entry) = self.resources.get(uri) {
            return Owner::One(&entry.owner);
        }
        if let Some(servers) = self.shared.get(uri) {
            return Owner::Several(servers.clone());
        }
        let mut found: Vec<(&ServerName, &O)> = Vec::new();
        for (template, server, owner) in &self.matched {
            if !found.iter().any(|(known, _)| *known == server) && template.match_uri(uri).is_some() {
                found.push((server, owner));
            }
        }
        match (found.as_slice(), self.with_resources.as_slice()) {
            ([(_, owner)], _) => Owner::One(owner),
            ([], [(_, owner)]) => Owner::One(owner),
            ([], _) => Owner::Nobody,
            (several, _) => Owner::Several(several.iter().map(|(server, _)| (*server).clone()).collect()),
        }
    }

    /// Finds a server that has resources by its name.
    pub(crate) fn with_resources_named(&self, name: &str) -> Option<&O> {
        self.with_resources.iter().find(|(server, _)| *server == name).map(|(_, owner)| owner)
    }

    /// Compares what is listed with an older snapshot, list by list.
    pub(crate) fn differs(&self, before: &Self) -> Differs {
        Differs {
            tools: differ(&self.tools, &before.tools, |l, r| l.described() == r.described()),
            prompts: differ(&self.prompts, &before.prompts, |l, r| l.item == r.item),
            resources: differ(&self.resources, &before.resources, |l, r| l.item == r.item)
                || differ(&self.templates, &before.templates, |l, r| l.item == r.item),
        }
    }
}

/// Which lists are different.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Differs {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl Differs {
    pub(crate) const ALL: Self = Self { tools: true, prompts: true, resources: true };

    /// Returns the lists that are different here or there.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }
}

fn differ<T>(now: &Named<T>, before: &Named<T>, same: impl Fn(&T, &T) -> bool) -> bool {
    now.len() != before.len()
        || now.iter().zip(before).any(|((name, entry), (other, old))| name != other || !same(entry, old))
}
