//! Requests over HTTP/1.1, on connections that are kept for the next.

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
