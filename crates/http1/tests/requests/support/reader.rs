//! The two readers that are compared.

use std::convert::Infallible;
use std::future::{Pending, pending};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::Body;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use trunkline_http1::server::{
    ConnectionTimeouts, DrainSignal, IncomingRequest, ServerConnection, ServerStream,
};

/// A request that was read to the end of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) version: Version,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Bytes,
}

/// The requests of one connection, in order.
type ReadRequests = Arc<Mutex<Vec<ReadRequest>>>;

/// Has our server read what came over a connection, in pieces.
pub(crate) async fn read_by_us(bytes: &[u8], piece: usize) -> Vec<ReadRequest> {
    let requests = ReadRequests::default();
    let kept = requests.clone();
    let service = move |request: IncomingRequest| answer(request.into_request(), kept.clone());
    let time = Duration::from_secs(600);
    let timeouts = ConnectionTimeouts { head: time, idle: time, response_poll: time };
    let connection = ServerConnection::new(service, None::<()>, &timeouts, NeverDrains);
    // A connection that breaks has read what it has read.
    let _ = connection.serve(PieceStream::new(bytes, piece)).await;
    let requests = requests.lock().unwrap();
    requests.clone()
}

/// Has hyper read the same.
pub(crate) async fn read_by_hyper(bytes: &[u8], piece: usize) -> Vec<ReadRequest> {
    let requests = ReadRequests::default();
    let kept = requests.clone();
    let service = hyper::service::service_fn(move |request| {
        let answer = answer(request, kept.clone());
        async { Ok::<_, Infallible>(answer.await) }
    });
    let stream = TokioIo::new(PieceStream::new(bytes, piece));
    // Else it gives up the request that it reads when the input ends, which here it does at once.
    let _ =
        hyper::server::conn::http1::Builder::new().half_close(true).serve_connection(stream, service).await;
    let requests = requests.lock().unwrap();
    requests.clone()
}

async fn answer<B: Body>(request: Request<B>, requests: ReadRequests) -> Response<Empty<Bytes>> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else { return Response::new(Empty::new()) };
    let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.as_str().to_owned(), value.as_bytes().to_vec())
    };
    requests.lock().unwrap().push(ReadRequest {
        method: parts.method.to_string(),
        target: parts.uri.to_string(),
        version: parts.version,
        headers: parts.headers.iter().map(header).collect(),
        body: body.to_bytes(),
    });
    Response::new(Empty::new())
}

/// A connection on which everything has come, and is read in pieces; nothing that is written is kept.
struct PieceStream {
    bytes: Bytes,
    piece: usize,
}

impl PieceStream {
    fn new(bytes: &[u8], piece: usize) -> Self {
        Self { bytes: Bytes::copy_from_slice(bytes), piece }
    }
}

impl AsyncRead for PieceStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = self.piece.min(self.bytes.len()).min(buffer.remaining());
        buffer.put_slice(&self.bytes.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PieceStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl ServerStream for PieceStream {
    fn set_buffered(&mut self, _: usize) {}

    fn is_reset(&self) -> bool {
        false
    }
}

/// A server that goes on for as long as its connection.
struct NeverDrains;

impl DrainSignal for NeverDrains {
    type Draining = Pending<()>;

    fn is_draining(&self) -> bool {
        false
    }

    fn watch_draining(&self) -> Pending<()> {
        pending()
    }
}
