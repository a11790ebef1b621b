//! Requests over HTTP/1.1, on connections that are kept for the next.
//!
//! # Invariants
//!
//! - A refused connection is reported as "not sent": `refused_connection_is_reported_as_not_sent`.
//! - Bytes that arrive before a request was sent are never used as its response:
//!   `unsolicited_response_is_never_matched_to_a_request`.

mod body;
mod client_connection;
mod connect;
mod draining;
mod error;
mod head;
mod header_lines;
mod http_client;
mod pool;
mod response_headers;

pub use self::body::HttpResponseBody;
pub use self::connect::{ClientConnector, ClientStream, RequestForm};
pub use self::error::{HttpError, RequestDelivery};
pub use self::head::{ResponseHead, take_response_head};
pub use self::header_lines::HeaderLines;
pub use self::http_client::{
    HttpClient, HttpClientOptions, HttpRequest, HttpResponse, OriginMismatch, RequestTarget,
};
pub use self::response_headers::ResponseHeaders;
