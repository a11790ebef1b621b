//! Requests over HTTP/1.1, on connections that are kept for the next.

mod body;
mod client;
mod ending;
mod error;
mod head;
mod lines;
mod link;
mod pool;
mod response_headers;

pub use self::body::ResponseBody;
pub use self::client::{HttpClient, HttpOptions, HttpRequest, HttpResponse, OtherOrigin, Place};
pub use self::error::{HttpError, Reach};
pub use self::lines::HeaderLines;
pub use self::response_headers::ResponseHeaders;
