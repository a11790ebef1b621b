//! What a server offers, taken over list by list.

use std::sync::Arc;

use tokio::time::timeout;
use trunkline_client::{Error, List, ListsAs};
use trunkline_config::ServerName;
use trunkline_protocol::Refusal;
use trunkline_protocol::model::ServerCapabilities;

use super::items::{self, CatalogueItem, ListReport};
use crate::limits::HubLimits;
use crate::registry::Catalogue;
use crate::trail::{HubId, circle};

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

/// Whose lists are fetched, and within which bounds.
pub(super) struct Source<'s> {
    pub(super) server: &'s ServerName,
    pub(super) limits: &'s HubLimits,
    pub(super) hub: &'s HubId,
}

/// Lists what a server offers. Of what cannot be listed that which was known before counts on, and the reason is noted.
pub(super) async fn fetch(
    client: &ListsAs,
    offered: &ServerCapabilities,
    lists: Lists,
    before: &Catalogue,
    source: Source<'_>,
) -> Listed {
    let limits = source.limits;
    // What was left out of lists that are not looked at now still is.
    let is_kept = |reason: &&String| !lists.have(reason.split(':').next().unwrap_or_default());
    let kept = |reasons: &[String]| reasons.iter().filter(is_kept).cloned().collect();
    let (left_out, repaired) = (kept(&before.left_out), kept(&before.repaired));
    let mut taken = Taken { catalogue: before.clone(), left_out, repaired, before, source, circle: None };
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
    if let Some(tools) = tools.and_then(|listed| taken.note(listed)) {
        taken.catalogue.tools = tools;
    }
    if let Some(prompts) = prompts.and_then(|listed| taken.note(listed)) {
        taken.catalogue.prompts = prompts;
    }
    if let Some(resources) = resources.and_then(|listed| taken.note(listed)) {
        taken.catalogue.resources = resources;
    }
    // Many servers that have resources know nothing of templates.
    if templates.as_ref().is_some_and(is_unknown_method) {
        taken.catalogue.templates = Arc::default();
    }
    let templates = templates.filter(|listed| !is_unknown_method(listed));
    if let Some(templates) = templates.and_then(|listed| taken.note(listed)) {
        taken.catalogue.templates = templates;
    }
    (taken.catalogue.left_out, taken.catalogue.repaired) =
        (Arc::new(taken.left_out), Arc::new(taken.repaired));
    Listed { catalogue: taken.catalogue, failed, circle: taken.circle }
}

struct Taken<'l> {
    catalogue: Catalogue,
    left_out: Vec<String>,
    repaired: Vec<String>,
    before: &'l Catalogue,
    source: Source<'l>,
    circle: Option<String>,
}

impl Taken<'_> {
    /// Takes a list over, or notes why not.
    fn note<T: CatalogueItem>(&mut self, listed: Result<Arc<List<T>>, Error>) -> Option<Arc<Vec<T>>> {
        match listed {
            Ok(list) => {
                let taken = items::take(&list, self.source.limits, self.source.hub);
                self.report(T::LIST, &taken.report);
                Some(Arc::new(taken.items))
            }
            Err(error) => {
                if let Error::Refused(refused) = &error {
                    self.circle = circle(refused).map(str::to_owned).or(self.circle.take());
                }
                let line = format!("{}: {error}", T::LIST);
                if !self.before.left_out.contains(&line) {
                    tracing::warn!(server = %self.source.server, list = T::LIST, %error, "listing failed");
                }
                self.left_out.push(line);
                None
            }
        }
    }

    /// Notes what of a list was not taken over as it is, and logs it in one line unless the same was logged before.
    fn report(&mut self, list: &str, report: &ListReport) {
        let (left_out, repaired) = (report.left_out.lines(list), report.repaired.lines(list));
        let lines = || left_out.iter().chain(&repaired);
        let is_new =
            lines().any(|line| !self.before.left_out.contains(line) && !self.before.repaired.contains(line));
        if is_new {
            let examples: Vec<_> = lines().take(MOST_LOGGED).map(String::as_str).collect();
            tracing::warn!(
                server = %self.source.server,
                list,
                left_out = report.left_out.count(),
                repaired = report.repaired.count(),
                examples = examples.join("; "),
                "items of a list were left out or repaired"
            );
        }
        self.left_out.extend(left_out);
        self.repaired.extend(repaired);
    }
}

/// The most items of one list that are described in the log.
const MOST_LOGGED: usize = 3;

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
