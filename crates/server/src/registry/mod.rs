//! What a server offers at one moment.

mod page;
mod rendered;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use self::page::{ListKind, page};
pub(crate) use self::rendered::Rendered;
use crate::part::Parts;
use crate::prompt::PromptEntry;
use crate::resource::{ResourceEntry, TemplateEntry};
use crate::tool::ToolEntry;

/// A snapshot, which is replaced as a whole and never changed: calls that run keep the one that they started with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    pub(crate) tools: BTreeMap<Arc<str>, Arc<ToolEntry>>,
    pub(crate) prompts: BTreeMap<Arc<str>, Arc<PromptEntry>>,
    pub(crate) resources: BTreeMap<Arc<str>, Arc<ResourceEntry>>,
    pub(crate) templates: BTreeMap<Arc<str>, Arc<TemplateEntry>>,
    /// The templates once more, in the order in which they were added and are tried.
    pub(crate) tried: Vec<Arc<TemplateEntry>>,
    pub(crate) offers: Offers,
}

/// What is advertised; what was offered once stays advertised, so that a list may become empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offers {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) completions: bool,
}

impl Registry {
    /// Adds parts, all or none.
    ///
    /// # Errors
    /// The problems that the parts had, and every name that is taken already.
    pub(crate) fn with(&self, parts: Parts) -> Result<Self, Vec<String>> {
        let mut next = self.clone();
        let mut problems = parts.problems;
        next.offers.tools |= !parts.tools.is_empty();
        next.offers.prompts |= !parts.prompts.is_empty();
        next.offers.resources |= !parts.resources.is_empty() || !parts.templates.is_empty();
        next.offers.completions |= parts.prompts.iter().any(|prompt| prompt.completes());
        next.offers.completions |= parts.templates.iter().any(|template| template.completes());
        for tool in parts.tools {
            problems.extend(insert(&mut next.tools, "tool", tool.name().into(), tool));
        }
        for prompt in parts.prompts {
            problems.extend(insert(&mut next.prompts, "prompt", prompt.name().into(), prompt));
        }
        for resource in parts.resources {
            problems.extend(insert(&mut next.resources, "resource", resource.uri().into(), resource));
        }
        for template in parts.templates {
            next.tried.push(template.clone());
            problems.extend(insert(
                &mut next.templates,
                "resource template",
                template.uri().into(),
                template,
            ));
        }
        if problems.is_empty() { Ok(next) } else { Err(problems) }
    }

    /// Removes a template; returns false if there is none.
    pub(crate) fn remove_template(&mut self, uri: &str) -> bool {
        self.tried.retain(|template| template.uri() != uri);
        self.templates.remove(uri).is_some()
    }
}

/// Adds an entry, or returns the problem that its name is taken.
fn insert<T>(entries: &mut BTreeMap<Arc<str>, T>, kind: &str, name: Arc<str>, entry: T) -> Option<String> {
    if entries.contains_key(&name) {
        return Some(format!("{kind} `{name}`: there are two of this name"));
    }
    entries.insert(name, entry);
    None
}
