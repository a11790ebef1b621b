//! Requests over HTTP/1.1 on connections that the [`Dialer`] opens; the client itself is that of `trunkline-http1`.

use trunkline_http1::client;
pub use trunkline_http1::client::{
    HeaderLines, HttpClientOptions, HttpRequest, OriginMismatch, RequestDelivery, RequestTarget,
    ResponseHeaders,
};

use crate::dial::{DialError, Dialer};

/// Sends requests to one origin, on connections that a [`Dialer`] opens.
pub type HttpClient = client::HttpClient<Dialer>;

/// A response with a body that has not been read.
pub type HttpResponse = client::HttpResponse<Dialer>;

/// The body of a response, read as it arrives.
pub type HttpResponseBody = client::HttpResponseBody<Dialer>;

/// Why there is no response, or no more of one.
pub type HttpError = client::HttpError<DialError>;
