//! What a server offers, taken over list by list.

use std::sync::Arc;

use tokio::time::timeout;
use trunkline_client::{Error, List, ListsAs};
use trunkline_protocol::model::{Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool};
use trunkline_protocol::{Members, Refusal};

use crate::limits::HubLimits;
use crate::registry::Catalogue;
use crate::trail::{HubId, Trail, circle};

/// Which lists are to be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl Lists {
    pub(super) const ALL: Self = Self { tools: true, prompts: true, resources: true };
    pub(crate) const NONE: Self = Self { tools: false, prompts: false, resources: false };

    pub(super) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Reports whether a list is one of these, by what it is called in reasons.
    fn have(self, what: &str) -> bool {
        match what {
            "tools" => self.tools,
            "prompts" => self.prompts,
            _ => self.resources,
        }
    }

    /// Returns these and others.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }
}

/// What came of listing what a server offers.
pub(super) struct Listed {
    pub(super) catalogue: Catalogue,
    /// Which lists are to be asked for again.
    pub(super) failed: Lists,
    /// That the server is this hub itself, in words.
    pub(super) circle: Option<String>,
}

/// Lists what a server offers. Of what cannot be listed that which was known before counts on, and the reason is noted.
pub(super) async fn fetch(
    client: &ListsAs,
    offered: &ServerCapabilities,
    lists: Lists,
    before: &Catalogue,
    limits: &HubLimits,
    hub: &HubId,
) -> Listed {
    // What was left out of lists that are not looked at now still is.
    let is_kept = |reason: &&String| !lists.have(reason.split(':').next().unwrap_or_default());
    let left_out = before.left_out.iter().filter(is_kept).cloned().collect();
    let mut taken = Taken { catalogue: before.clone(), left_out, limits, hub, circle: None };
    taken.catalogue.has_resources = offered.resources.is_some();
    let (has_tools, has_prompts) = (offered.tools.is_some(), offered.prompts.is_some());
    let has_resources = offered.resources.is_some();
    // What is not offered at all is not what was known before.
    if !has_tools {
        taken.catalogue.tools = Arc::default();
    }
    if !has_prompts {
        taken.catalogue.prompts = Arc::default();
    }
    if !has_resources {
        (taken.catalogue.resources, taken.catalogue.templates) = Default::default();
    }
    let (tools, prompts, resources, templates) = tokio::join!(
        within(limits, lists.tools && has_tools, client.tools()),
        within(limits, lists.prompts && has_prompts, client.prompts()),
        within(limits, lists.resources && has_resources, client.resources()),
        within(limits, lists.resources && has_resources, client.templates()),
    );
    let failed = Lists {
        tools: may_come(&tools),
        prompts: may_come(&prompts),
        resources: may_come(&resources) || may_come(&templates),
    };
    if let Some(tools) =
        tools.and_then(|listed| taken.note("tools", listed, |tool: &Tool| tool.meta.as_ref()))
    {
        taken.catalogue.tools = tools;
    }
    if let Some(prompts) =
        prompts.and_then(|listed| taken.note("prompts", listed, |prompt: &Prompt| prompt.meta.as_ref()))
    {
        taken.catalogue.prompts = prompts;
    }
    if let Some(resources) = resources
        .and_then(|listed| taken.note("resources", listed, |resource: &Resource| resource.meta.as_ref()))
    {
        taken.catalogue.resources = resources;
    }
    // Many servers that have resources know nothing of templates.
    if templates.as_ref().is_some_and(is_unknown_method) {
        taken.catalogue.templates = Arc::default();
    }
    let templates = templates.filter(|listed| !is_unknown_method(listed));
    if let Some(templates) = templates.and_then(|listed| {
        taken.note("resource templates", listed, |template: &ResourceTemplate| template.meta.as_ref())
    }) {
        taken.catalogue.templates = templates;
    }
    taken.catalogue.left_out = Arc::new(taken.left_out);
    Listed { catalogue: taken.catalogue, failed, circle: taken.circle }
}

struct Taken<'l> {
    catalogue: Catalogue,
    left_out: Vec<String>,
    limits: &'l HubLimits,
    hub: &'l HubId,
    circle: Option<String>,
}

impl Taken<'_> {
    fn note<T: Clone>(
        &mut self,
        what: &str,
        listed: Result<Arc<List<T>>, Error>,
        meta: fn(&T) -> Option<&Members>,
    ) -> Option<Arc<Vec<T>>> {
        match listed {
            Ok(list) => {
                let left_out = list.left_out.iter().take(self.limits.list_items.min(100));
                self.left_out.extend(left_out.map(|item| format!("{what}: {}: {}", item.name, item.reason)));
                let is_own = |item: &T| Trail::of(meta(item)).check(self.hub).is_err();
                let (back, kept): (Vec<T>, Vec<T>) = list.iter().map(|item| T::clone(item)).partition(is_own);
                if !back.is_empty() {
                    let problem = "would lead back to this hub, which is among the servers of that one";
                    tracing::warn!(count = back.len(), what, "what a server has would lead back to this hub");
                    self.left_out.push(format!("{what}: {} of them {problem}", back.len()));
                }
                Some(Arc::new(kept))
            }
            Err(error) => {
                tracing::warn!(%error, what, "a list could not be taken over");
                if let Error::Refused(refused) = &error {
                    self.circle = circle(refused).map(str::to_owned).or(self.circle.take());
                }
                self.left_out.push(format!("{what}: {error}"));
                None
            }
        }
    }
}

/// Lists within the time that a server has for it, if it is to be listed at all.
async fn within<T>(
    limits: &HubLimits,
    is_wanted: bool,
    listing: impl Future<Output = Result<Arc<List<T>>, Error>>,
) -> Option<Result<Arc<List<T>>, Error>> {
    if !is_wanted {
        return None;
    }
    let after = limits.catalogue_within;
    Some(timeout(after, listing).await.unwrap_or(Err(Error::TimedOut { after })))
}

/// Reports whether a list that could not be had may be had later.
fn may_come<T>(listed: &Option<Result<Arc<List<T>>, Error>>) -> bool {
    listed.as_ref().is_some_and(|listed| listed.is_err() && !is_unknown_method(listed))
}

fn is_unknown_method<T>(listed: &Result<Arc<List<T>>, Error>) -> bool {
    let unknown = Refusal::METHOD_NOT_FOUND.code(trunkline_protocol::Era::Legacy);
    matches!(listed, Err(Error::Refused(refused)) if refused.code == unknown)
}
