//! The current parts of a server.

mod page;
mod rendered_item;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use self::page::{ListKind, page};
pub use self::rendered_item::RenderedItem;
use crate::part::Parts;
use crate::prompt::PromptEntry;
use crate::resource::{ResourceEntry, TemplateEntry};
use crate::tool::ToolEntry;

/// A snapshot, which is replaced as a whole and never changed: running calls keep the one that they started with.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartRegistry {
    pub(crate) tools: BTreeMap<Arc<str>, Arc<ToolEntry>>,
    /// The other names by which tools may be called, which are not listed.
    pub(crate) aliases: BTreeMap<Arc<str>, Arc<ToolEntry>>,
    pub(crate) prompts: BTreeMap<Arc<str>, Arc<PromptEntry>>,
    pub(crate) resources: BTreeMap<Arc<str>, Arc<ResourceEntry>>,
    pub(crate) templates: BTreeMap<Arc<str>, Arc<TemplateEntry>>,
    /// The templates once more, in the order in which they were added and are tried.
    pub(crate) template_order: Vec<Arc<TemplateEntry>>,
    pub(crate) features: AdvertisedFeatures,
    /// The parts of providers, by the provider's index.
    pub(crate) provider_parts: BTreeMap<usize, Arc<ProviderParts>>,
}

/// The advertised features; a feature that was offered once stays advertised, so that a list may become empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdvertisedFeatures {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) completions: bool,
}

impl AdvertisedFeatures {
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
            completions: self.completions || other.completions,
        }
    }
}

impl PartRegistry {
    /// Adds parts, all or none.
    ///
    /// # Errors
    /// The problems of the parts, and every name that is already in use.
    pub(crate) fn with(&self, parts: Parts) -> Result<Self, Vec<String>> {
        let mut next = self.clone();
        let mut problems = parts.problems.clone();
        next.features.tools |= !parts.tools.is_empty();
        next.features.prompts |= !parts.prompts.is_empty();
        next.features.resources |= !parts.resources.is_empty() || !parts.templates.is_empty();
        problems.extend(next.insert(parts, None).into_iter().map(|collision| collision.to_string()));
        if problems.is_empty() { Ok(next) } else { Err(problems) }
    }

    /// Replaces the parts of a source by its current ones, and returns those that had to be left out; `None` if the
    /// registry has a newer list already.
    pub(crate) fn with_provider_parts(
        &self,
        at: usize,
        provided: ProviderParts,
    ) -> Option<(Self, RejectedParts)> {
        let mut next = self.clone();
        if let Some(before) = next.provider_parts.remove(&at) {
            if before.generation > provided.generation {
                return None;
            }
            next.remove_parts(&before.parts);
        }
        let named = |problem: &String| format!("provider `{}`: {problem}", provided.source);
        let unusable = provided.parts.problems.iter().map(named).collect();
        let provided = Arc::new(provided);
        next.provider_parts.insert(at, provided.clone());
        let collisions = next.insert(provided.parts.clone(), Some(&provided.source));
        let collisions = collisions.iter().map(ToString::to_string).collect();
        Some((next, RejectedParts { unusable, collisions }))
    }

    /// Finds a tool by its name, or by another name that it may be called by.
    pub(crate) fn tool(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.tools.get(name).or_else(|| self.aliases.get(name))
    }

    /// Removes a tool with all its names; returns false if there is none.
    pub(crate) fn remove_tool(&mut self, name: &str) -> bool {
        let Some(tool) = self.tools.remove(name) else { return false };
        tool.aliases().iter().for_each(|alias| remove(&mut self.aliases, alias, &tool));
        true
    }

    /// Adds the parts with unused names, and returns the others.
    fn insert(&mut self, parts: Parts, source: Option<&str>) -> Vec<PartCollision> {
        self.features.completions |= parts.prompts.iter().any(|prompt| !prompt.completers().is_empty());
        self.features.completions |= parts.templates.iter().any(|template| !template.completers().is_empty());
        let (mut collisions, provided, theirs) = (Vec::new(), &self.provider_parts, source);
        let mut note = |kind, name: &str, owner: Option<&str>| {
            let [owner, theirs] = [owner, theirs].map(|source| source.map(str::to_owned));
            collisions.push(PartCollision { kind, name: name.to_owned(), sources: [owner, theirs] });
        };
        for tool in parts.tools {
            if let Some(taken) = insert(&mut self.tools, tool.name(), &tool) {
                note("tool", tool.name(), owner(provided, |parts| &parts.tools, &taken));
                continue;
            }
            for alias in tool.aliases() {
                insert(&mut self.aliases, alias, &tool);
            }
        }
        for prompt in parts.prompts {
            if let Some(taken) = insert(&mut self.prompts, prompt.name(), &prompt) {
                note("prompt", prompt.name(), owner(provided, |parts| &parts.prompts, &taken));
            }
        }
        for resource in parts.resources {
            if let Some(taken) = insert(&mut self.resources, resource.uri(), &resource) {
                note("resource", resource.uri(), owner(provided, |parts| &parts.resources, &taken));
            }
        }
        for template in parts.templates {
            match insert(&mut self.templates, template.uri(), &template) {
                None => self.template_order.push(template),
                Some(taken) => {
                    note(
                        "resource template",
                        template.uri(),
                        owner(provided, |parts| &parts.templates, &taken),
                    );
                }
            }
        }
        collisions
    }

    /// Removes the parts of a source, as far as they still exist.
    fn remove_parts(&mut self, parts: &Parts) {
        for tool in &parts.tools {
            remove(&mut self.tools, tool.name(), tool);
            tool.aliases().iter().for_each(|alias| remove(&mut self.aliases, alias, tool));
        }
        parts.prompts.iter().for_each(|prompt| remove(&mut self.prompts, prompt.name(), prompt));
        parts.resources.iter().for_each(|resource| remove(&mut self.resources, resource.uri(), resource));
        for template in &parts.templates {
            remove(&mut self.templates, template.uri(), template);
            self.template_order.retain(|tried| !Arc::ptr_eq(tried, template));
        }
    }

    /// Removes a template; returns false if there is none.
    pub(crate) fn remove_template(&mut self, uri: &str) -> bool {
        self.template_order.retain(|template| template.uri() != uri);
        self.templates.remove(uri).is_some()
    }
}

/// The parts of a provider that were left out, and why.
#[derive(Debug, Default)]
pub(crate) struct RejectedParts {
    /// Parts that are invalid themselves.
    pub(crate) unusable: Vec<String>,
    /// Parts with a name that is already in use.
    pub(crate) collisions: Vec<String>,
}

/// The parts of a provider in the registry.
#[derive(Debug)]
pub(crate) struct ProviderParts {
    /// The provider's name.
    pub(crate) source: String,
    /// The generation of its list: a later list has a greater number.
    pub(crate) generation: u64,
    /// Its parts, including those that had to be left out.
    pub(crate) parts: Parts,
}

/// Two parts of one name, and where they come from; `None` is the server itself.
struct PartCollision {
    kind: &'static str,
    name: String,
    sources: [Option<String>; 2],
}

impl fmt::Display for PartCollision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, sources } = self;
        write!(f, "{kind} `{name}`: ")?;
        if let [None, None] = sources {
            return f.write_str("there are two of this name");
        }
        let [first, second] = sources.each_ref().map(|source| match source {
            Some(source) => format!("provider `{source}`"),
            None => "the server itself".to_owned(),
        });
        write!(f, "{first} and {second} both have it")
    }
}

/// Adds an entry, or returns the one that has the name already.
fn insert<T>(entries: &mut BTreeMap<Arc<str>, Arc<T>>, name: &str, entry: &Arc<T>) -> Option<Arc<T>> {
    if let Some(taken) = entries.get(name) {
        return Some(taken.clone());
    }
    entries.insert(name.into(), entry.clone());
    None
}

fn remove<T>(entries: &mut BTreeMap<Arc<str>, Arc<T>>, name: &str, entry: &Arc<T>) {
    if entries.get(name).is_some_and(|there| Arc::ptr_eq(there, entry)) {
        entries.remove(name);
    }
}

/// Finds the provider that an entry comes from.
fn owner<'l, T>(
    provided: &'l BTreeMap<usize, Arc<ProviderParts>>,
    entries: fn(&Parts) -> &Vec<Arc<T>>,
    entry: &Arc<T>,
) -> Option<&'l str> {
    let from = |provided: &&Arc<ProviderParts>| {
        entries(&provided.parts).iter().any(|there| Arc::ptr_eq(there, entry))
    };
    provided.values().find(from).map(|provided| provided.source.as_str())
}
