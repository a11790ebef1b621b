//! HTTP/1.1 over connected streams, without TLS, proxies, DNS or MCP.
//!
//! [`client`] sends requests over pooled connections, [`server`] answers the requests of one connection. Both share how bytes are read
//! and where heads and bodies end in them.

pub mod client;
mod framing;
#[cfg(test)]
pub(crate) mod mutations;
mod raw_headers;
mod read_buffer;
pub mod server;
mod url;

pub use self::framing::{BodyFraming, BodyRead, ChunkedDecoder, read_length};
pub use self::raw_headers::RawHeaders;
pub use self::read_buffer::ReadBuffer;
pub use self::url::{Url, UrlError, UrlScheme};

/// The bytes that a head may have, all together.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// The number of headers that a head may have.
pub const MAX_HEADERS: usize = 100;

/// A body up to this is copied behind its head, which is cheaper than to write from two places.
pub const MAX_COPIED_BODY: usize = 8 * 1024;
