//! Requests over HTTP/1.1, on connections that are kept for the next.

mod body;
mod client;
mod counted;
mod ending;
mod error;
mod link;
mod pool;

pub use self::body::ResponseBody;
pub use self::client::{HttpClient, HttpOptions, HttpRequest, HttpResponse, OtherOrigin, Place};
pub use self::error::{HttpError, Reach};
