use std::error::Error;
use std::fmt;
use std::sync::OnceLock;

use http::request::Parts;
use http::uri::Authority;
use http::{Extensions, Method, Request, Response, Uri, Version};
use http_body::Body;
use trunkline_http1::RawHeaders;

use super::connection::RequestBody;
use super::mcp_headers::McpHeaders;

/// A request that came over a connection of [`serve`](super::serve).
///
/// Most are messages to the endpoint, which needs a few of their headers and each of them once. So they are as the client wrote
/// them until somebody wants [the request](Self::into_request).
pub struct IncomingRequest {
    pub(super) head: RequestHead,
    pub(super) body: RequestBody,
}

impl IncomingRequest {
    /// Returns the method.
    pub fn method(&self) -> &Method {
        self.head.method()
    }

    /// Returns the address.
    pub fn uri(&self) -> &Uri {
        &self.head.uri
    }

    /// Returns the request.
    pub fn into_request(self) -> Request<RequestBody> {
        Request::from_parts(self.head.into_parts(), self.body)
    }
}

impl fmt::Debug for IncomingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the query nor a header, which may hold a secret.
        f.debug_struct("Arrival")
            .field("method", self.method())
            .field("path", &self.head.path())
            .finish_non_exhaustive()
    }
}

/// Answers the requests of [`serve`](super::serve): an endpoint, a function, or something that adds paths beside an endpoint.
pub trait Service: Clone + Send + Sync + 'static {
    /// The body of a response.
    type Body: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send;

    /// Answers a request. It is dropped as soon as nobody waits for the response any more.
    fn respond(&self, request: IncomingRequest) -> impl Future<Output = Response<Self::Body>> + Send;
}

impl<A, F, B> Service for A
where
    A: Fn(IncomingRequest) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send,
{
    type Body = B;

    fn respond(&self, request: IncomingRequest) -> impl Future<Output = Response<B>> + Send {
        self(request)
    }
}

/// The head of a request. Its headers are put into a map only if somebody looks for one by its name.
pub(super) struct RequestHead {
    method: Method,
    uri: Uri,
    version: Version,
    extensions: Extensions,
    raw_headers: RawHeaders,
    /// The same, once somebody wanted it; all there is if it came like this.
    parts: OnceLock<Box<Parts>>,
}

impl RequestHead {
    pub(super) fn new(method: Method, uri: Uri, version: Version, written: RawHeaders) -> Self {
        Self {
            method,
            uri,
            version,
            extensions: Extensions::new(),
            raw_headers: written,
            parts: OnceLock::new(),
        }
    }

    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    pub(super) fn path(&self) -> &str {
        self.uri.path()
    }

    pub(super) fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// Returns the host of the first line, which only a request to a proxy has.
    pub(super) fn authority(&self) -> Option<&Authority> {
        self.uri.authority()
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Adds what the connection has to say of a request.
    pub(super) fn insert_extension(&mut self, extension: impl Clone + Send + Sync + 'static) {
        self.extensions.insert(extension);
    }

    /// Gathers the headers that decide what becomes of the request.
    pub(super) fn mcp_headers(&self) -> McpHeaders<'_> {
        match self.parts.get() {
            Some(parts) => McpHeaders::from_map(&parts.headers),
            None => McpHeaders::read(self.raw_headers.iter()),
        }
    }

    /// Returns the head with all of its headers in a map.
    pub(super) fn parts(&self) -> &Parts {
        self.parts.get_or_init(|| Box::new(self.to_parts()))
    }

    fn to_parts(&self) -> Parts {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.method = self.method.clone();
        parts.uri = self.uri.clone();
        parts.version = self.version;
        parts.headers = self.raw_headers.to_map();
        parts.extensions = self.extensions.clone();
        parts
    }

    fn into_parts(mut self) -> Parts {
        match self.parts.take() {
            Some(parts) => *parts,
            None => self.to_parts(),
        }
    }
}

impl From<Parts> for RequestHead {
    fn from(parts: Parts) -> Self {
        let (method, uri, version) = (parts.method.clone(), parts.uri.clone(), parts.version);
        let mut head = Self::new(method, uri, version, RawHeaders::default());
        head.parts = Box::new(parts).into();
        head
    }
}
