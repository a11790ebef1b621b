use std::collections::HashSet;
use std::sync::Arc;

use trunkline_protocol::model::{Prompt, Resource, ResourceTemplate, Tool};

/// The items of a server, as last listed.
///
/// Lists are shared, since only one of them changes at a time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UpstreamListing {
    pub(crate) tools: Arc<Vec<Tool>>,
    pub(crate) prompts: Arc<Vec<Prompt>>,
    pub(crate) resources: Arc<Vec<Resource>>,
    pub(crate) templates: Arc<Vec<ResourceTemplate>>,
    /// Whether it has resources at all, listed or not.
    pub(crate) has_resources: bool,
    /// Items that were rejected, each with the reason.
    pub(crate) skipped: Arc<Vec<String>>,
    /// Items that were repaired or truncated, each with the reason.
    pub(crate) repaired: Arc<Vec<String>>,
    pub(crate) bytes: ListingBytes,
}

/// The lists of a listing, by the names that they have in reports.
const LISTS: [&str; 4] = ["tools", "prompts", "resources", "resource templates"];

/// The size of each list. Listings with the same items are equal, however their servers wrote them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ListingBytes([usize; LISTS.len()]);

impl PartialEq for ListingBytes {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl ListingBytes {
    /// Returns the sizes with another one for a list.
    #[must_use]
    pub(crate) fn with(mut self, list: &str, bytes: usize) -> Self {
        let sizes = LISTS.iter().zip(&mut self.0);
        sizes.filter(|(name, _)| **name == list).for_each(|(_, size)| *size = bytes);
        self
    }

    pub(crate) fn total(self) -> usize {
        self.0.iter().sum()
    }
}

impl UpstreamListing {
    /// Adds the items that only another listing of the same server has: some servers list more for clients with more
    /// capabilities.
    pub(crate) fn merge(&self, other: &Self) -> Self {
        Self {
            tools: union(&self.tools, &other.tools, |tool| &tool.name),
            prompts: union(&self.prompts, &other.prompts, |prompt| &prompt.name),
            resources: union(&self.resources, &other.resources, |resource| &resource.uri),
            templates: union(&self.templates, &other.templates, |template| &template.uri_template),
            has_resources: self.has_resources || other.has_resources,
            skipped: self.skipped.clone(),
            repaired: self.repaired.clone(),
            bytes: self.bytes,
        }
    }
}

fn union<T: Clone>(first: &Arc<Vec<T>>, second: &Arc<Vec<T>>, key: impl Fn(&T) -> &String) -> Arc<Vec<T>> {
    let known: HashSet<&String> = first.iter().map(&key).collect();
    let mut further = second.iter().filter(|item| !known.contains(key(item))).peekable();
    if further.peek().is_none() {
        return first.clone();
    }
    Arc::new(first.iter().chain(further).cloned().collect())
}
