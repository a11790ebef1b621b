//! Complete lists over all pages, with bounds for faulty cursors.
//!
//! # Invariants
//!
//! - Endless pagination is an error: `endless_list_pages_are_an_error`.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::time::Instant;
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{
    CacheHint, ClientCapabilities, MalformedModel, Prompt, RepairLog, RepairedModel, Resource,
    ResourceTemplate, Tool,
};
use trunkline_protocol::{Method, RawJson, Refusal, shorten};

use crate::cache::CacheKey;
use crate::call::ClientCall;
use crate::client::ClientInner;
use crate::error::Error;
use crate::with_raw::WithRaw;

/// A complete list of a server's items.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ItemList<T> {
    items: Vec<WithRaw<T>>,
    /// Items that were left out, since they cannot be used.
    pub skipped: Vec<SkippedItem>,
    /// Items that were repaired: a malformed member was removed or replaced.
    pub repaired: Vec<RepairedItem>,
}

/// A list item that was malformed in part. [`WithRaw::raw`] has it as the server wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedItem {
    /// The name of the item.
    pub name: String,
    /// The malformed parts.
    pub repairs: RepairLog,
}

/// A list item that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedItem {
    /// The name of the item, as far as it can be parsed.
    pub name: String,
    /// Why it cannot be used.
    pub reason: String,
}

impl<T> Deref for ItemList<T> {
    type Target = [WithRaw<T>];

    fn deref(&self) -> &Self::Target {
        &self.items
    }
}

impl<'a, T> IntoIterator for &'a ItemList<T> {
    type Item = &'a WithRaw<T>;
    type IntoIter = std::slice::Iter<'a, WithRaw<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

/// A type of list items.
pub(crate) trait ListItem: Sized + Send + Sync + 'static {
    const METHOD: Method;
    const KEY: &'static str;

    fn read(raw: &RawJson) -> Result<RepairedModel<Self>, MalformedModel>;

    /// Processes a complete list, and may leave further items out. The list may be one of several for different
    /// capabilities.
    fn complete(_: &ClientInner, _: &mut ItemList<Self>, _is_one_of_several: bool) {}
}

macro_rules! listed {
    ($($type:ty => $method:ident, $key:literal;)*) => {
        $(impl ListItem for $type {
            const METHOD: Method = Method::$method;
            const KEY: &'static str = $key;

            fn read(raw: &RawJson) -> Result<RepairedModel<Self>, MalformedModel> {
                Self::read_repaired(raw)
            }
        })*
    };
}

listed! {
    Prompt => PromptsList, "prompts";
    Resource => ResourcesList, "resources";
    ResourceTemplate => TemplatesList, "resourceTemplates";
}

impl ListItem for Tool {
    const METHOD: Method = Method::ToolsList;
    const KEY: &'static str = "tools";

    fn read(raw: &RawJson) -> Result<RepairedModel<Self>, MalformedModel> {
        Self::read_repaired(raw)
    }

    fn complete(inner: &ClientInner, list: &mut ItemList<Self>, is_one_of_several: bool) {
        if !inner.session.load().edge.mirrors_arguments() {
            let tools = list.items.iter().map(|tool| (tool, MirroredParams::default()));
            inner.tools.learn(tools, is_one_of_several);
            return;
        }
        let mut mirrored = Vec::with_capacity(list.items.len());
        let left_out = &mut list.skipped;
        list.items.retain(|tool| {
            let schema = tool.input_schema.decode().unwrap_or_default();
            match MirroredParams::from_schema(&schema) {
                Ok(params) => {
                    mirrored.push(params);
                    true
                }
                Err(error) => {
                    left_out.push(SkippedItem { name: shorten(&tool.name), reason: error.to_string() });
                    false
                }
            }
        });
        inner.tools.learn(list.items.iter().zip(mirrored), is_one_of_several);
    }
}

/// One page, unparsed.
struct ListPage {
    items: Vec<RawJson>,
    next: Option<RawJson>,
    cache: CacheHint,
    bytes: usize,
}

impl ClientInner {
    /// Returns a list, from the cache if it has not expired.
    pub(crate) async fn list<T: ListItem>(self: &Arc<Self>) -> Result<Arc<ItemList<T>>, Error> {
        let key = CacheKey::List(T::METHOD.as_str());
        if let Some(cached) = self.cache.get::<ItemList<T>>(&key) {
            return Ok(cached);
        }
        let reservation = self.cache.reserve(key);
        let (list, cache, bytes) = self.fetch_whole_list::<T>(None).await?;
        let list = Arc::new(list);
        self.cache.put(reservation, cache, bytes, || list.clone());
        Ok(list)
    }

    /// Returns the list that the server has for clients with these capabilities; it is not cached.
    pub(crate) async fn list_for<T: ListItem>(
        self: &Arc<Self>,
        capabilities: &ClientCapabilities,
    ) -> Result<Arc<ItemList<T>>, Error> {
        self.fetch_whole_list(Some(capabilities)).await.map(|(list, ..)| Arc::new(list))
    }

    async fn fetch_whole_list<T: ListItem>(
        self: &Arc<Self>,
        capabilities: Option<&ClientCapabilities>,
    ) -> Result<(ItemList<T>, CacheHint, usize), Error> {
        match self.fetch_pages::<T>(capabilities).await {
            // The server rejected its own cursor in mid-list: the pages so far are useless, and the list is
            // restarted once.
            Err(ListError::InvalidCursor(_)) => {
                self.fetch_pages::<T>(capabilities).await.map_err(Error::from)
            }
            fetched => fetched.map_err(Error::from),
        }
    }

    async fn fetch_pages<T: ListItem>(
        self: &Arc<Self>,
        capabilities: Option<&ClientCapabilities>,
    ) -> Result<(ItemList<T>, CacheHint, usize), ListError> {
        let limits = &self.plan.limits;
        let began = Instant::now();
        let mut list = ItemList { items: Vec::new(), skipped: Vec::new(), repaired: Vec::new() };
        let mut seen = HashSet::new();
        let mut cursor: Option<RawJson> = None;
        let mut cache: Option<CacheHint> = None;
        let mut bytes = 0;
        for _ in 0..limits.pages {
            // Every page has its own timeout, and a thousand pages must not take a thousand times as long.
            if began.elapsed() > limits.max_total_timeout {
                return Err(Error::TimedOut { after: began.elapsed() }.into());
            }
            let page = self.fetch_page::<T>(cursor.as_ref(), capabilities).await?;
            bytes += page.bytes;
            if bytes > limits.list_bytes {
                let method = T::METHOD.as_str();
                let problem = format!("the pages of `{method}` have more than {} bytes", limits.list_bytes);
                return Err(Error::Malformed(problem).into());
            }
            // The list is cached no longer than its shortest-lived page.
            let strictest =
                |cached: CacheHint| CacheHint { ttl_ms: cached.ttl_ms.min(page.cache.ttl_ms), ..cached };
            cache = Some(cache.map_or(page.cache, strictest));
            if list.items.len() + page.items.len() > limits.items {
                let problem = format!("`{}` lists more than {} items", T::METHOD.as_str(), limits.items);
                return Err(Error::Malformed(problem).into());
            }
            for item in page.items {
                add_item(&mut list, item);
            }
            let Some(next) = page.next else {
                T::complete(self, &mut list, capabilities.is_some());
                log_problems(&list);
                return Ok((list, cache.unwrap_or_default(), bytes));
            };
            if !seen.insert(next.clone()) {
                let problem = format!("the pages of `{}` go round in a circle", T::METHOD.as_str());
                return Err(Error::Malformed(problem).into());
            }
            cursor = Some(next);
        }
        let problem = format!("`{}` has more than {} pages", T::METHOD.as_str(), limits.pages);
        Err(Error::Malformed(problem).into())
    }

    async fn fetch_page<T: ListItem>(
        self: &Arc<Self>,
        cursor: Option<&RawJson>,
        capabilities: Option<&ClientCapabilities>,
    ) -> Result<ListPage, ListError> {
        let mut call = ClientCall::with_method(T::METHOD);
        call.capabilities = capabilities.cloned();
        call.meta.clone_from(&self.plan.list_meta);
        if let Some(cursor) = cursor {
            call.params.set("cursor", cursor.clone());
        }
        let result = match self.run(&call, None).await {
            Err(Error::ErrorResponse(refused)) if cursor.is_some() && is_invalid_cursor(refused.code) => {
                return Err(ListError::InvalidCursor(Error::ErrorResponse(refused)));
            }
            result => result?,
        };
        let malformed = |problem: &dyn std::fmt::Display| {
            Error::Malformed(format!("the answer to `{}`: {problem}", T::METHOD.as_str()))
        };
        // Shallow, so that an item that nests too deep is left out alone.
        let mut members = result.shallow_members().map_err(|error| malformed(&error))?;
        let items = members.take(T::KEY).ok_or_else(|| malformed(&format!("`{}` is missing", T::KEY)))?;
        let items = items.elements().map_err(|_| malformed(&format!("`{}` must be an array", T::KEY)))?;
        let next =
            members.take("nextCursor").filter(|next| !next.is_null()).map(|next| next.to_owned_buffer());
        if next.as_ref().is_some_and(|next| next.as_text().is_none()) {
            return Err(malformed(&"`nextCursor` must be a string").into());
        }
        Ok(ListPage { items, next, cache: CacheHint::read(&members), bytes: result.as_str().len() })
    }

    /// Lists the tools again, past the cache.
    ///
    /// A list consists of requests too, but never of tool calls, so that this recurses only one level deep.
    pub(crate) fn refresh_tools(self: &Arc<Self>) -> BoxFuture<'_, Result<(), Error>> {
        self.cache.invalidate(|key| *key == CacheKey::List(Method::ToolsList.as_str()));
        Box::pin(async { self.list::<Tool>().await.map(drop) })
    }
}

/// Adds an item to a list, or leaves it out.
fn add_item<T: ListItem>(list: &mut ItemList<T>, item: RawJson) {
    let name = || {
        let members = item.shallow_members().unwrap_or_default();
        let name = ["uri", "uriTemplate", "name"].iter().find_map(|key| members.text(key));
        shorten(&name.unwrap_or_default())
    };
    match T::read(&item) {
        Ok(RepairedModel { item: value, repairs }) => {
            if !repairs.is_empty() {
                list.repaired.push(RepairedItem { name: name(), repairs });
            }
            list.items.push(WithRaw::new(value, item));
        }
        Err(problem) => list.skipped.push(SkippedItem { name: name(), reason: problem.to_string() }),
    }
}

/// Logs the problems of a list in one line, however many items have one.
fn log_problems<T: ListItem>(list: &ItemList<T>) {
    let (left_out, repaired) = (list.skipped.len(), list.repaired.len());
    if let Some(first) = list.skipped.first() {
        let SkippedItem { name, reason } = first;
        tracing::debug!(
            method = T::METHOD.as_str(),
            left_out,
            repaired,
            name,
            reason,
            "left items out of a list"
        );
    } else if let Some(first) = list.repaired.first() {
        let RepairedItem { name, repairs } = first;
        tracing::debug!(method = T::METHOD.as_str(), repaired, name, %repairs, "repaired items of a list");
    }
}

/// Why a list could not be completed.
enum ListError {
    /// The server rejected a cursor of its own.
    InvalidCursor(Error),
    Failed(Error),
}

impl From<Error> for ListError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ListError> for Error {
    fn from(stopped: ListError) -> Self {
        match stopped {
            ListError::InvalidCursor(error) | ListError::Failed(error) => error,
        }
    }
}

fn is_invalid_cursor(code: i64) -> bool {
    code == Refusal::INVALID_PARAMS.code(trunkline_protocol::Era::Modern)
}
