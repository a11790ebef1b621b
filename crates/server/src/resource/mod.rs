//! Resources and resource templates: how they are described, and how a read reaches their handler.

mod entry;
mod result;
mod template;
mod template_entry;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use trunkline_protocol::Refusal;
use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::{self, CacheHint};

pub(crate) use self::entry::ResourceEntry;
pub use self::result::{IntoReadResult, ReadRequest};
pub use self::template::ResourceTemplate;
pub(crate) use self::template_entry::TemplateEntry;
use crate::call::{BoxFuture, Context, HandlerOutcome};
use crate::described::{described, readable};
use crate::function::{HandlerFn, NoArguments};
use crate::part::{Part, Parts};

type ReadFuture = BoxFuture<'static, Result<HandlerOutcome, Refusal>>;
type ReadFn = Box<dyn Fn(Context, ReadRequest) -> ReadFuture + Send + Sync>;

/// A resource with one URI: its description, and its content or the function that reads it.
#[must_use = "a resource does nothing until it is given to a server"]
pub struct Resource {
    described: model::Resource,
    cache: CacheHint,
    read: Option<ReadFn>,
    problems: Vec<String>,
}

impl Resource {
    /// Names a resource and its URI.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            described: model::Resource::new(uri, name),
            cache: CacheHint::default(),
            read: None,
            problems: Vec::new(),
        }
    }

    /// Adopts the description of a resource that is known only at run time.
    pub(crate) fn from_description(described: model::Resource) -> Self {
        Self { described, ..Self::new("", "") }
    }

    /// Sets the size in bytes; with a fixed content it is known.
    pub fn size(mut self, bytes: u64) -> Self {
        self.described.size = Some(bytes);
        self
    }

    /// Sets the content: text that never changes.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        self.set_length(text.len());
        self.set_source(Box::new(move |_, request| ready(text.clone(), request)))
    }

    /// Sets the content: bytes that never change.
    pub fn blob(mut self, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        self.set_length(bytes.len());
        self.set_source(Box::new(move |_, request| ready(bytes.clone(), request)))
    }

    /// Sets the handler: an async function of the context, of the URI, of both, or of nothing.
    pub fn read<Shape, F>(self, handler: F) -> Self
    where
        F: HandlerFn<Shape>,
        F::Arguments: FromUri,
        F::Output: IntoReadResult,
    {
        self.set_source(Box::new(move |context, request| {
            let future = handler.invoke(context, F::Arguments::from_uri(&request.uri));
            Box::pin(async move { finish(future.await, request) })
        }))
    }

    fn set_length(&mut self, length: usize) {
        let length = u64::try_from(length).ok();
        self.described.size = self.described.size.or(length);
    }

    fn set_source(mut self, read: ReadFn) -> Self {
        if self.read.replace(read).is_some() {
            self.problems.push("has two sources; give one of `text`, `blob` and `read`".to_owned());
        }
        self
    }
}

fn finish(read: impl IntoReadResult, request: ReadRequest) -> Result<HandlerOutcome, Refusal> {
    result::finish(read, request).map(|result| HandlerOutcome::Done(ServerResult::Read(result)))
}

fn ready(read: impl IntoReadResult, request: ReadRequest) -> ReadFuture {
    Box::pin(std::future::ready(finish(read, request)))
}

/// What the handler of a [`Resource`] may take besides the context: its URI or nothing.
pub trait FromUri {
    /// Takes the URI.
    fn from_uri(uri: &str) -> Self;
}

impl FromUri for String {
    fn from_uri(uri: &str) -> Self {
        uri.to_owned()
    }
}

impl FromUri for NoArguments {
    fn from_uri(_: &str) -> Self {
        Self
    }
}

described!(Resource, "resource");
readable!(Resource, "resource");

impl Part for Resource {
    fn add_to(self, parts: &mut Parts) {
        let uri = self.described.uri.clone();
        match ResourceEntry::build(self) {
            Ok(entry) => parts.add_resource(entry),
            Err(problems) => {
                parts.report(problems.iter().map(|problem| format!("resource `{uri}`: {problem}")));
            }
        }
    }
}
