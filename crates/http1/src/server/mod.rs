//! The server end of HTTP/1.1: one connection, its requests one after the other.

mod body;
mod body_writer;
mod connection_io;
mod deadlines;
mod half_closed;
mod incoming_request;
mod request_head;
mod response_head;
mod server_connection;
mod server_stream;
mod upgrade;

pub use self::body::RequestBody;
pub use self::connection_io::MAX_SPARE_CAPACITY;
pub use self::deadlines::ConnectionTimeouts;
pub use self::incoming_request::{IncomingRequest, RemoteAddress, RequestHead, Service};
pub use self::request_head::{ParsedRequestHead, RequestHeadError, take_request_head};
pub use self::server_connection::ServerConnection;
pub use self::server_stream::{DrainSignal, ServerStream};
pub use self::upgrade::{ConnectionUpgrade, UpgradedConnection};
