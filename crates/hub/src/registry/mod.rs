//! A snapshot of all exposed items, and the server that owns each.

mod build;
mod entry;
mod listing;
mod ownership;
mod report;
mod resource_tools;
mod restrict;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use trunkline_config::{ServerName, ToolRules};
use trunkline_protocol::model::{Prompt, Resource, ResourceTemplate};

pub(crate) use self::build::MAX_INSTRUCTIONS_CHARS;
pub use self::build::ResourceTools;
pub(crate) use self::entry::requires_task;
pub(crate) use self::entry::{HubToolEntry, LOGIN_TOOL, RegistryEntry, ToolTarget};
#[cfg(test)]
pub(crate) use self::listing::ListingBytes;
pub(crate) use self::listing::UpstreamListing;
use self::ownership::ResourceClaims;
pub(crate) use self::report::log_collisions;
use crate::access::CallerAccess;
use crate::names::NameCollision;

type NamedMap<T> = BTreeMap<Arc<str>, Arc<T>>;

/// An immutable snapshot, which is replaced as a whole: running calls keep the one that they started with.
///
/// `O` is the handle of a server; nothing here depends on it.
#[derive(Debug)]
pub(crate) struct HubRegistry<O> {
    pub(crate) tools: NamedMap<HubToolEntry<O>>,
    pub(crate) prompts: NamedMap<RegistryEntry<O, Prompt>>,
    pub(crate) resources: NamedMap<RegistryEntry<O, Resource>>,
    pub(crate) templates: NamedMap<RegistryEntry<O, ResourceTemplate>>,
    /// The servers' claims on resources.
    claims: Arc<ResourceClaims<(ServerName, O)>>,
    /// The servers that have resources, listed or not, in the order of the configuration.
    pub(crate) with_resources: Vec<(ServerName, O)>,
    pub(crate) collisions: Vec<NameCollision>,
    pub(crate) instructions: Option<String>,
    /// The instructions of each server.
    advice: Arc<[ServerAdvice]>,
    /// What the callers of this registry may use; `None` for everything.
    pub(crate) access: Option<Arc<CallerAccess>>,
}

/// A server, with its instructions if it has any.
#[derive(Clone, Debug)]
struct ServerAdvice {
    server: ServerName,
    instructions: Option<String>,
}

/// The items that one server contributes to a registry.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamOffer<O> {
    pub(crate) server: ServerName,
    pub(crate) owner: O,
    pub(crate) rules: ToolRules,
    pub(crate) listing: Arc<UpstreamListing>,
    pub(crate) instructions: Option<String>,
    /// Whether its names are exposed without a prefix.
    pub(crate) keeps_original_names: bool,
    /// Whether its only item is the tool by which a user logs in.
    pub(crate) is_login: bool,
}

impl<O> Default for HubRegistry<O> {
    fn default() -> Self {
        Self {
            tools: BTreeMap::new(),
            prompts: BTreeMap::new(),
            resources: BTreeMap::new(),
            templates: BTreeMap::new(),
            claims: Arc::default(),
            with_resources: Vec::new(),
            collisions: Vec::new(),
            instructions: None,
            advice: Arc::default(),
            access: None,
        }
    }
}

impl<O: Clone> HubRegistry<O> {
    /// Returns the server that owns a resource: the first that claims its URI, then the first with a catch-all
    /// template. An unclaimed resource belongs to the only server with resources, if there is only one.
    pub(crate) fn owner_of(&self, uri: &str) -> Option<&O> {
        let only = || match self.with_resources.as_slice() {
            [(_, only)] => Some(only),
            _ => None,
        };
        let caught = || self.claims.catch_all_owner(uri).map(|(_, owner)| owner);
        self.claiming_owner(uri).or_else(caught).or_else(only)
    }

    /// Returns the server that claims a resource's URI by a listing or by a template with a scheme.
    pub(crate) fn claiming_owner(&self, uri: &str) -> Option<&O> {
        self.claims.claiming_owner(uri).map(|(_, owner)| owner)
    }

    /// Returns the first of some servers, in the order of the configuration, that has resources.
    pub(crate) fn first_with_resources(&self, servers: &[ServerName]) -> Option<&O> {
        let mut known = self.with_resources.iter();
        known.find(|(server, _)| servers.contains(server)).map(|(_, owner)| owner)
    }

    /// Finds a server by its name, if the caller may see any of its resources.
    pub(crate) fn with_resources_named(&self, name: &str) -> Option<&O> {
        self.visible_with_resources().find(|(server, _)| *server == name).map(|(_, owner)| owner)
    }

    /// Compares what is listed with an older snapshot, list by list.
    pub(crate) fn diff(&self, before: &Self) -> ListDifferences {
        ListDifferences {
            tools: maps_differ(&self.tools, &before.tools, |l, r| l.tool() == r.tool()),
            prompts: maps_differ(&self.prompts, &before.prompts, |l, r| l.item == r.item),
            resources: maps_differ(&self.resources, &before.resources, |l, r| l.item == r.item)
                || maps_differ(&self.templates, &before.templates, |l, r| l.item == r.item),
        }
    }
}

/// The lists that differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListDifferences {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl ListDifferences {
    pub(crate) const ALL: Self = Self { tools: true, prompts: true, resources: true };

    /// Returns the lists that differ in either.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }
}

fn maps_differ<T>(now: &NamedMap<T>, before: &NamedMap<T>, same: impl Fn(&T, &T) -> bool) -> bool {
    now.len() != before.len()
        || now.iter().zip(before).any(|((name, entry), (other, old))| name != other || !same(entry, old))
}
