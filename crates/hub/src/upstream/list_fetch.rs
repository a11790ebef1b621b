//! Fetches the lists of a server.

use std::sync::Arc;

use tokio::time::timeout;
use trunkline_client::{CapabilityLists, Error, ItemList};
use trunkline_config::ServerName;
use trunkline_protocol::Refusal;
use trunkline_protocol::model::ServerCapabilities;

use super::items::{self, CatalogueItem, ListReport};
use super::status::demands_auth;
use crate::limits::HubLimits;
use crate::loop_detection::{HubId, loop_message};
use crate::registry::UpstreamCatalogue;

/// A set of lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListSet {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

impl ListSet {
    pub(super) const ALL: Self = Self { tools: true, prompts: true, resources: true };
    pub(crate) const NONE: Self = Self { tools: false, prompts: false, resources: false };

    pub(super) fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Reports whether a list is in the set, by its name in reports.
    fn includes(self, what: &str) -> bool {
        match what {
            "tools" => self.tools,
            "prompts" => self.prompts,
            _ => self.resources,
        }
    }

    /// Returns the lists of either set.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            tools: self.tools || other.tools,
            prompts: self.prompts || other.prompts,
            resources: self.resources || other.resources,
        }
    }
}

/// The outcome of fetching a server's lists.
pub(super) struct FetchedLists {
    pub(super) catalogue: UpstreamCatalogue,
    /// The lists to retry.
    pub(super) failed: ListSet,
    /// The error message if the server is this hub itself.
    pub(super) loop_message: Option<String>,
    /// The error of a server that demands a token for all of its lists.
    pub(super) auth_error: Option<Error>,
}

/// The server that lists are fetched from, and the limits.
pub(super) struct ListFetchContext<'s> {
    pub(super) server: &'s ServerName,
    pub(super) limits: &'s HubLimits,
    pub(super) hub: &'s HubId,
}

/// Fetches the lists of a server. A list that fails keeps its previous items, and the reason is recorded.
pub(super) async fn fetch_lists(
    client: &CapabilityLists,
    offered: &ServerCapabilities,
    lists: ListSet,
    before: &UpstreamCatalogue,
    source: ListFetchContext<'_>,
) -> FetchedLists {
    let limits = source.limits;
    let mut collected = ListCollector::new(offered, lists, before, source);
    let (has_tools, has_prompts) = (offered.tools.is_some(), offered.prompts.is_some());
    let has_resources = offered.resources.is_some();
    let (tools, prompts, resources, templates) = tokio::join!(
        list_with_timeout(limits, lists.tools && has_tools, client.tools()),
        list_with_timeout(limits, lists.prompts && has_prompts, client.prompts()),
        list_with_timeout(limits, lists.resources && has_resources, client.resources()),
        list_with_timeout(limits, lists.resources && has_resources, client.templates()),
    );
    let failed = ListSet {
        tools: is_retryable(&tools),
        prompts: is_retryable(&prompts),
        resources: is_retryable(&resources) || is_retryable(&templates),
    };
    let errors = [error_of(&tools), error_of(&prompts), error_of(&resources), error_of(&templates)];
    let auth_error = find_auth_error(&errors);
    if let Some(tools) = tools.and_then(|listed| collected.accept_list(listed)) {
        collected.catalogue.tools = tools;
    }
    if let Some(prompts) = prompts.and_then(|listed| collected.accept_list(listed)) {
        collected.catalogue.prompts = prompts;
    }
    if let Some(resources) = resources.and_then(|listed| collected.accept_list(listed)) {
        collected.catalogue.resources = resources;
    }
    // Many servers with resources do not implement `resources/templates/list`.
    if templates.as_ref().is_some_and(is_unknown_method) {
        collected.catalogue.templates = Arc::default();
    }
    let templates = templates.filter(|listed| !is_unknown_method(listed));
    if let Some(templates) = templates.and_then(|listed| collected.accept_list(listed)) {
        collected.catalogue.templates = templates;
    }
    (collected.catalogue.skipped, collected.catalogue.repaired) =
        (Arc::new(collected.skipped), Arc::new(collected.repaired));
    FetchedLists { catalogue: collected.catalogue, failed, loop_message: collected.loop_message, auth_error }
}

struct ListCollector<'l> {
    catalogue: UpstreamCatalogue,
    skipped: Vec<String>,
    repaired: Vec<String>,
    before: &'l UpstreamCatalogue,
    source: ListFetchContext<'l>,
    loop_message: Option<String>,
}

impl<'l> ListCollector<'l> {
    /// Starts with what there was before, as far as it stays.
    fn new(
        offered: &ServerCapabilities,
        lists: ListSet,
        before: &'l UpstreamCatalogue,
        source: ListFetchContext<'l>,
    ) -> Self {
        // Reports about lists that are not fetched now stay.
        let is_kept = |reason: &&String| !lists.includes(reason.split(':').next().unwrap_or_default());
        let kept = |reasons: &[String]| reasons.iter().filter(is_kept).cloned().collect();
        let (skipped, repaired) = (kept(&before.skipped), kept(&before.repaired));
        let mut catalogue = before.clone();
        catalogue.has_resources = offered.resources.is_some();
        // Previous items of a capability that the server does not declare any more are dropped.
        if offered.tools.is_none() {
            catalogue.tools = Arc::default();
        }
        if offered.prompts.is_none() {
            catalogue.prompts = Arc::default();
        }
        if offered.resources.is_none() {
            (catalogue.resources, catalogue.templates) = Default::default();
        }
        Self { catalogue, skipped, repaired, before, source, loop_message: None }
    }

    /// Accepts a list, or records the reason why not.
    fn accept_list<T: CatalogueItem>(
        &mut self,
        listed: Result<Arc<ItemList<T>>, Error>,
    ) -> Option<Arc<Vec<T>>> {
        match listed {
            Ok(list) => {
                let taken = items::accept_items(&list, self.source.limits, self.source.hub);
                self.report(T::LIST, &taken.report);
                Some(Arc::new(taken.items))
            }
            Err(error) => {
                if let Error::ErrorResponse(refused) = &error {
                    self.loop_message = loop_message(refused).map(str::to_owned).or(self.loop_message.take());
                }
                let line = format!("{}: {error}", T::LIST);
                if !self.before.skipped.contains(&line) {
                    tracing::warn!(server = %self.source.server, %error, "cannot list {}", T::LIST);
                }
                self.skipped.push(line);
                None
            }
        }
    }

    /// Records the items of a list that were skipped or repaired, and logs them in one line unless the same was
    /// logged before.
    fn report(&mut self, list: &str, report: &ListReport) {
        let (left_out, repaired) = (report.skipped.lines(list), report.repaired.lines(list));
        let lines = || left_out.iter().chain(&repaired);
        let is_new =
            lines().any(|line| !self.before.skipped.contains(line) && !self.before.repaired.contains(line));
        if is_new {
            let examples: Vec<_> = lines().take(MAX_LOGGED_ITEMS).map(String::as_str).collect();
            tracing::warn!(
                server = %self.source.server,
                list,
                left_out = report.skipped.count(),
                repaired = report.repaired.count(),
                examples = examples.join("; "),
                "skipped or repaired invalid list items"
            );
        }
        self.skipped.extend(left_out);
        self.repaired.extend(repaired);
    }
}

/// The most items of one list that are described in the log.
const MAX_LOGGED_ITEMS: usize = 3;

/// Fetches a list within the listing timeout, if it is wanted.
async fn list_with_timeout<T>(
    limits: &HubLimits,
    is_wanted: bool,
    listing: impl Future<Output = Result<Arc<ItemList<T>>, Error>>,
) -> Option<Result<Arc<ItemList<T>>, Error>> {
    if !is_wanted {
        return None;
    }
    let after = limits.listing_timeout;
    Some(timeout(after, listing).await.unwrap_or(Err(Error::TimedOut { after })))
}

/// Reports whether a failed list may succeed later.
fn is_retryable<T>(listed: &Option<Result<Arc<ItemList<T>>, Error>>) -> bool {
    listed.as_ref().is_some_and(|listed| listed.is_err() && !is_unknown_method(listed))
}

/// Returns whether a list was fetched, and the error if it failed.
fn error_of<T>(listed: &Option<Result<Arc<ItemList<T>>, Error>>) -> Option<Option<Error>> {
    listed.as_ref().map(|listed| listed.as_ref().err().cloned())
}

/// Returns the error of a server that demands a token for every list that was fetched.
fn find_auth_error(fetched: &[Option<Option<Error>>]) -> Option<Error> {
    let is_auth = |error: &Option<Error>| error.as_ref().is_some_and(demands_auth);
    let mut errors = fetched.iter().flatten();
    if !errors.clone().all(is_auth) {
        return None;
    }
    errors.next().cloned().flatten()
}

fn is_unknown_method<T>(listed: &Result<Arc<ItemList<T>>, Error>) -> bool {
    let unknown = Refusal::METHOD_NOT_FOUND.code(trunkline_protocol::Era::Legacy);
    matches!(listed, Err(Error::ErrorResponse(refused)) if refused.code == unknown)
}
