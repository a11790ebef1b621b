//! Fetches the lists of a server.

use std::sync::Arc;

use tokio::time::timeout;
use trunkline_client::{CapabilityLists, Error, ItemList};
use trunkline_config::ServerName;
use trunkline_protocol::Refusal;
use trunkline_protocol::model::{Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool};
use trunkline_server::UpstreamItem;

use super::bounded_text::bounded_line;
use super::items::{self, ListReport, ListedItem};
use super::list_set::ListSet;
use super::status::demands_auth;
use crate::limits::HubLimits;
use crate::loop_detection::{HubId, loop_message};
use crate::registry::{UpstreamListing, requires_task};

/// The outcome of fetching a server's lists.
pub(super) struct FetchedLists {
    pub(super) listing: UpstreamListing,
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
    before: &UpstreamListing,
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
        UpstreamItem::TaskRequired.count(tools.iter().filter(|tool| requires_task(tool)).count());
        collected.listing.tools = tools;
    }
    if let Some(prompts) = prompts.and_then(|listed| collected.accept_list(listed)) {
        collected.listing.prompts = prompts;
    }
    if let Some(resources) = resources.and_then(|listed| collected.accept_list(listed)) {
        collected.listing.resources = resources;
    }
    // Many servers with resources do not implement `resources/templates/list`.
    if templates.as_ref().is_some_and(is_unknown_method) {
        collected.listing.templates = Arc::default();
    }
    let templates = templates.filter(|listed| !is_unknown_method(listed));
    if let Some(templates) = templates.and_then(|listed| collected.accept_list(listed)) {
        collected.listing.templates = templates;
    }
    (collected.listing.skipped, collected.listing.repaired) =
        (Arc::new(collected.skipped), Arc::new(collected.repaired));
    FetchedLists { listing: collected.listing, failed, loop_message: collected.loop_message, auth_error }
}

struct ListCollector<'l> {
    listing: UpstreamListing,
    skipped: Vec<String>,
    repaired: Vec<String>,
    before: &'l UpstreamListing,
    source: ListFetchContext<'l>,
    loop_message: Option<String>,
}

impl<'l> ListCollector<'l> {
    /// Starts with what there was before, as far as it stays.
    fn new(
        offered: &ServerCapabilities,
        lists: ListSet,
        before: &'l UpstreamListing,
        source: ListFetchContext<'l>,
    ) -> Self {
        // Reports about lists that are not fetched now stay.
        let is_kept = |reason: &&String| !lists.includes(reason.split(':').next().unwrap_or_default());
        let kept = |reasons: &[String]| reasons.iter().filter(is_kept).cloned().collect();
        let (skipped, repaired) = (kept(&before.skipped), kept(&before.repaired));
        let mut listing = before.clone();
        listing.has_resources = offered.resources.is_some();
        // Previous items of a capability that the server does not declare any more are dropped.
        if offered.tools.is_none() {
            listing.tools = Arc::default();
            listing.bytes = listing.bytes.with(Tool::LIST, 0);
        }
        if offered.prompts.is_none() {
            listing.prompts = Arc::default();
            listing.bytes = listing.bytes.with(Prompt::LIST, 0);
        }
        if offered.resources.is_none() {
            (listing.resources, listing.templates) = Default::default();
            listing.bytes = listing.bytes.with(Resource::LIST, 0).with(ResourceTemplate::LIST, 0);
        }
        Self { listing, skipped, repaired, before, source, loop_message: None }
    }

    /// Accepts a list, or records the reason why not.
    fn accept_list<T: ListedItem>(&mut self, listed: Result<Arc<ItemList<T>>, Error>) -> Option<Arc<Vec<T>>> {
        match listed {
            Ok(list) => {
                let taken = items::accept_items(&list, self.source.limits, self.source.hub);
                let (bytes, most) =
                    (self.listing.bytes.with(T::LIST, taken.bytes), self.source.limits.listing_bytes);
                if bytes.total() > most {
                    self.refuse(
                        T::LIST,
                        format!("the lists of the server together have more than {most} bytes"),
                    );
                    return None;
                }
                self.listing.bytes = bytes;
                self.report(T::LIST, &taken.report);
                Some(Arc::new(taken.items))
            }
            Err(error) => {
                if let Error::ErrorResponse(refused) = &error {
                    self.loop_message = loop_message(refused).map(str::to_owned).or(self.loop_message.take());
                }
                self.refuse(T::LIST, error.to_string());
                None
            }
        }
    }

    /// Records why a list is not used.
    fn refuse(&mut self, list: &str, error: String) {
        UpstreamItem::ListRefused.count(1);
        let error = bounded_line(error);
        let line = format!("{list}: {error}");
        if !self.before.skipped.contains(&line) {
            tracing::warn!(server = %self.source.server, error, "cannot list {list}");
        }
        self.skipped.push(line);
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
