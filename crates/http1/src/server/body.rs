use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::BodyFraming;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use super::connection_io::ConnectionIo;
use super::server_stream::ServerStream;

/// The body of a request that came over a [`ServerConnection`](super::ServerConnection).
///
/// It is read as it arrives, and only while it is polled. Once the request is answered, unread data is discarded.
pub struct RequestBody(RequestBodyKind);

enum RequestBodyKind {
    /// All of it was there with its head, as most bodies are.
    Whole(Bytes),
    /// It is still coming.
    Streaming(BodyReader),
}

impl RequestBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self(RequestBodyKind::Whole(bytes))
    }

    pub(super) fn streaming(reader: BodyReader) -> Self {
        Self(RequestBodyKind::Streaming(reader))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.0 {
            RequestBodyKind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            RequestBodyKind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            RequestBodyKind::Streaming(reader) => reader.poll_chunk(cx).map_ok(Frame::data),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.size_hint().exact() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            RequestBodyKind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            RequestBodyKind::Streaming(reader) => reader.size_hint(),
        }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            RequestBodyKind::Whole(_) => "RequestBody(whole)",
            RequestBodyKind::Streaming(_) => "RequestBody(coming)",
        })
    }
}

/// A connection that is lent to the body of a request, so that the reader of the body reads the connection.
///
/// Only a body that did not come with its head has one, so that a call through a table of functions for each piece is cheap.
pub(super) type BodyReader = Arc<dyn BodySource>;

/// Gives the pieces of a body, whatever the socket that they come from.
pub(super) trait BodySource: Send + Sync {
    fn poll_chunk(&self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>>;

    fn size_hint(&self) -> SizeHint;
}

enum BodyReaderState<K> {
    Connection {
        io: Box<ConnectionIo<K>>,
        /// The task that waits for more of the body.
        reader: Option<Waker>,
    },
    /// It was taken back after the end of the body.
    Finished,
    /// It was taken back before.
    Reclaimed,
}

impl<K: ServerStream> BodySource for Mutex<BodyReaderState<K>> {
    fn poll_chunk(&self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match &mut *self.lock() {
            BodyReaderState::Connection { io, reader } => {
                let piece = io.poll_body(cx);
                *reader = piece.is_pending().then(|| cx.waker().clone());
                piece
            }
            BodyReaderState::Finished => Poll::Ready(None),
            BodyReaderState::Reclaimed => Poll::Ready(Some(Err(io::ErrorKind::NotConnected.into()))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &*self.lock() {
            BodyReaderState::Connection { io, .. } if io.body().is_complete() => SizeHint::with_exact(0),
            BodyReaderState::Connection { io, .. } => match io.body() {
                BodyFraming::Length(left) => SizeHint::with_exact(*left),
                BodyFraming::Chunked(_) | BodyFraming::UntilClose => SizeHint::default(),
            },
            BodyReaderState::Finished => SizeHint::with_exact(0),
            BodyReaderState::Reclaimed => SizeHint::default(),
        }
    }
}

/// The owner of a connection that a body reads. It takes the connection back at the latest when it is dropped, or a handler that
/// keeps the body would keep the connection.
pub(super) struct BodyReaderOwner<K: ServerStream>(Arc<Mutex<BodyReaderState<K>>>);

impl<K: ServerStream> BodyReaderOwner<K> {
    pub(super) fn new(io: Box<ConnectionIo<K>>) -> Self {
        Self(Arc::new(Mutex::new(BodyReaderState::Connection { io, reader: None })))
    }

    pub(super) fn reader(&self) -> BodyReader {
        self.0.clone()
    }

    /// Takes the connection back, whatever is left of the body.
    pub(super) fn reclaim(&self) -> Option<Box<ConnectionIo<K>>> {
        self.reclaim_if(|_| true)
    }

    /// Takes the connection back if the body is over.
    pub(super) fn reclaim_finished(&self) -> Option<Box<ConnectionIo<K>>> {
        self.reclaim_if(|io| io.body().is_complete())
    }

    fn reclaim_if(&self, is_time: impl Fn(&ConnectionIo<K>) -> bool) -> Option<Box<ConnectionIo<K>>> {
        let mut state = self.0.lock();
        let left = match &*state {
            BodyReaderState::Connection { io, .. } if !is_time(io) => return None,
            BodyReaderState::Connection { io, .. } if io.body().is_complete() => BodyReaderState::Finished,
            BodyReaderState::Connection { .. } => BodyReaderState::Reclaimed,
            BodyReaderState::Finished | BodyReaderState::Reclaimed => return None,
        };
        let BodyReaderState::Connection { io, reader } = std::mem::replace(&mut *state, left) else {
            return None;
        };
        drop(state);
        // It waits for something that will not come.
        if let Some(reader) = reader {
            reader.wake();
        }
        Some(io)
    }
}

impl<K: ServerStream> Drop for BodyReaderOwner<K> {
    fn drop(&mut self) {
        self.reclaim();
    }
}
