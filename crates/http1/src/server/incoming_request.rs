use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::OnceLock;

use crate::RawHeaders;
use http::request::Parts;
use http::uri::Authority;
use http::{Extensions, Method, Request, Response, Uri, Version};
use http_body::Body;

use super::body::RequestBody;

/// A request that came over a [`ServerConnection`](super::ServerConnection).
///
/// Most services need a few of its headers and each of them once. So they stay as the client wrote them until
/// [the request](Self::into_request) is needed.
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

    /// Takes the head and the body apart.
    pub fn into_head_and_body(self) -> (RequestHead, RequestBody) {
        (self.head, self.body)
    }

    /// Returns the request.
    pub fn into_request(self) -> Request<RequestBody> {
        Request::from_parts(self.head.into_parts(), self.body)
    }
}

impl fmt::Debug for IncomingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the query nor a header, which may hold a secret.
        f.debug_struct("IncomingRequest")
            .field("method", self.method())
            .field("path", &self.head.path())
            .finish_non_exhaustive()
    }
}

/// Answers the requests of a connection: an endpoint, a function, or something that adds paths beside an endpoint.
pub trait Service: Clone + Send + Sync + 'static {
    /// The body of a response.
    type Body: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send;

    /// Answers a request. The future is dropped as soon as the client is gone.
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

/// The address that a request came from, as an extension of a request that another listener accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteAddress(pub IpAddr);

/// The head of a request. Its headers are put into a map only when one is looked up by its name.
pub struct RequestHead {
    method: Method,
    uri: Uri,
    version: Version,
    extensions: Extensions,
    remote_address: Option<IpAddr>,
    raw_headers: RawHeaders,
    /// The same as a map, once it was needed; all there is if the head was made of parts.
    parts: OnceLock<Box<Parts>>,
}

impl RequestHead {
    pub(super) fn new(method: Method, uri: Uri, version: Version, written: RawHeaders) -> Self {
        Self {
            method,
            uri,
            version,
            extensions: Extensions::new(),
            remote_address: None,
            raw_headers: written,
            parts: OnceLock::new(),
        }
    }

    /// Returns the method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the path.
    pub fn path(&self) -> &str {
        self.uri.path()
    }

    /// Returns the query.
    pub fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// Returns the host of the first line, which only a request to a proxy has.
    pub fn authority(&self) -> Option<&Authority> {
        self.uri.authority()
    }

    /// Returns the version of HTTP.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the address that the request came from, if the listener knows it.
    pub fn remote_address(&self) -> Option<IpAddr> {
        self.remote_address
    }

    pub(super) fn set_remote_address(&mut self, address: Option<IpAddr>) {
        self.remote_address = address;
    }

    /// Adds an extension that describes the connection of a request.
    pub(super) fn insert_extension(&mut self, extension: impl Clone + Send + Sync + 'static) {
        self.extensions.insert(extension);
    }

    /// Returns the headers as the client wrote them; `None` once they are in a map, where [`parts`](Self::parts) has them.
    pub fn raw_headers(&self) -> Option<&RawHeaders> {
        self.parts.get().is_none().then_some(&self.raw_headers)
    }

    /// Returns the head with all of its headers in a map.
    pub fn parts(&self) -> &Parts {
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

impl fmt::Debug for RequestHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the query nor a header, which may hold a secret.
        let mut shown = f.debug_struct("RequestHead");
        shown.field("method", &self.method).field("path", &self.path()).finish_non_exhaustive()
    }
}

impl From<Parts> for RequestHead {
    fn from(parts: Parts) -> Self {
        let (method, uri, version) = (parts.method.clone(), parts.uri.clone(), parts.version);
        let mut head = Self::new(method, uri, version, RawHeaders::default());
        head.remote_address = parts.extensions.get::<RemoteAddress>().map(|RemoteAddress(address)| *address);
        head.parts = Box::new(parts).into();
        head
    }
}
