use std::error::Error;

use tokio::io::{AsyncRead, AsyncWrite};

use super::header_lines::HeaderLines;
use crate::url::Url;

/// A connected stream of bytes that a client can keep: anything that is read, written and moved between threads.
pub trait ClientStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> ClientStream for S {}

/// Opens the connections of a client: names, proxies and TLS are the connector's concern.
pub trait ClientConnector: Send + Sync {
    /// A connection.
    type Stream: ClientStream;
    /// The reason why there is no connection.
    type Error: Error + Send + 'static;

    /// Opens a connection to the origin of an address.
    fn connect(
        &self,
        origin: &Url,
    ) -> impl Future<Output = Result<(Self::Stream, RequestForm), Self::Error>> + Send;
}

/// The form of requests on a connection (RFC 9112, section 3.2).
#[derive(Clone, Debug)]
pub enum RequestForm {
    /// The request line has the path alone.
    Origin,
    /// The request line has the whole address, since a proxy reads it. These headers, the proxy's credentials, go with each
    /// request.
    Absolute(HeaderLines),
}
