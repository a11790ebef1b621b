use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::client_connection::ClientConnection;
use super::connect::ClientConnector;
use super::draining::{DrainStatus, DrainingResponse};
use super::error::{HttpError, RequestDelivery};
use super::pool::ConnectionPool;
use crate::{BodyFraming, BodyRead};

/// The body of a response, read as it arrives.
///
/// Once it was read to its end, its connection is kept for the next request. Dropping it earlier closes the connection.
pub struct HttpResponseBody<C: ClientConnector> {
    framing: BodyFraming,
    /// Gone once the body is over, or broke.
    connection: Option<Box<ClientConnection<C::Stream>>>,
    pool: Arc<ConnectionPool<C::Stream>>,
    /// How long the connection is kept afterwards; zero for not at all.
    idle_timeout: Duration,
}

impl<C: ClientConnector> HttpResponseBody<C> {
    pub(super) fn new(
        framing: BodyFraming,
        connection: Box<ClientConnection<C::Stream>>,
        pool: Arc<ConnectionPool<C::Stream>>,
        keep: Duration,
    ) -> Self {
        Self { framing, connection: Some(connection), pool, idle_timeout: keep }
    }

    /// Polls for the next piece; `None` is the end. Cancel safe.
    ///
    /// # Errors
    /// The connection broke before the end.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError<C::Error>>>> {
        let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
        let error = loop {
            match self.framing.read(connection.buffered()) {
                Ok(BodyRead::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(BodyRead::End) => {
                    self.release_connection();
                    return Poll::Ready(None);
                }
                Ok(BodyRead::NeedMore) => {
                    match ready!(connection.poll_fill(cx, self.framing.min_remaining())) {
                        Ok(0) if self.framing == BodyFraming::UntilClose => {
                            self.connection = None;
                            return Poll::Ready(None);
                        }
                        Ok(0) => break broken(io::ErrorKind::UnexpectedEof.into()),
                        Ok(_) => {}
                        Err(error) => break broken(error),
                    }
                }
                Err(problem) => break HttpError::Malformed(problem.to_owned()),
            }
        };
        self.connection = None;
        Poll::Ready(Some(Err(error)))
    }

    /// Gives the connection back, since the body is over.
    fn release_connection(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.put(connection, self.idle_timeout);
        }
    }

    /// Waits for the next piece; `None` is the end. Cancel safe.
    ///
    /// # Errors
    /// The connection broke before the end.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, HttpError<C::Error>>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Reads all of it, up to a limit.
    ///
    /// # Errors
    /// The connection broke before the end, or the body is longer than the limit.
    pub async fn read_all(&mut self, limit: usize) -> Result<Bytes, HttpError<C::Error>> {
        self.read_all_while(limit, |_| true).await
    }

    /// Reads all of it, up to a limit, and as long as `has_memory` accepts the number of bytes that are held.
    ///
    /// # Errors
    /// As [`read_all`](Self::read_all); [`HttpError::TooLong`] also if `has_memory` does not accept it.
    pub async fn read_all_while(
        &mut self,
        limit: usize,
        mut has_memory: impl FnMut(usize) -> bool,
    ) -> Result<Bytes, HttpError<C::Error>> {
        let too_long = || HttpError::TooLong { limit };
        if self.framing.min_remaining() > limit as u64 {
            return Err(too_long());
        }
        let Some(first) = self.chunk().await.transpose()? else { return Ok(Bytes::new()) };
        // Nearly always one piece is all there is, and need not be copied.
        let second = if self.framing.is_complete() { None } else { self.chunk().await.transpose()? };
        let Some(second) = second else {
            self.release_connection();
            return if first.len() > limit { Err(too_long()) } else { Ok(first) };
        };
        let mut all = BytesMut::with_capacity(first.len() + second.len());
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(more) = self.chunk().await.transpose()? {
            let bytes = all.len() + more.len();
            if bytes > limit || !has_memory(bytes) {
                return Err(too_long());
            }
            all.extend_from_slice(&more);
        }
        if all.len() > limit { Err(too_long()) } else { Ok(all.freeze()) }
    }

    /// Reads the beginning, for people: at most `limit` bytes of it, and nothing if it breaks before.
    pub async fn read_prefix(&mut self, limit: usize) -> Bytes {
        let mut beginning = BytesMut::new();
        while let Some(Ok(more)) = self.chunk().await {
            let room = limit.saturating_sub(beginning.len());
            beginning.extend_from_slice(more.get(..room.min(more.len())).unwrap_or_default());
            if beginning.len() >= limit {
                break;
            }
        }
        beginning.freeze()
    }

    /// Gives the rest up, which is expected to be nothing or a few words: the connection is used again if it is.
    pub fn finish(self) {
        let Self { framing, connection, pool, idle_timeout: keep } = self;
        let Some(connection) = connection else { return };
        let mut ending = DrainingResponse::new(framing, connection);
        match ending.check() {
            DrainStatus::Done => pool.put(ending.into_connection(), keep),
            DrainStatus::Pending => pool.put_draining(ending, keep),
            DrainStatus::Failed => {}
        }
    }

    /// Takes the connection, with what was read ahead of it.
    pub fn into_stream(self) -> Option<(C::Stream, Bytes)> {
        self.connection.map(|connection| connection.into_stream())
    }
}

fn broken<E: Error>(error: io::Error) -> HttpError<E> {
    HttpError::broken(error, RequestDelivery::MaybeSent)
}

impl<C: ClientConnector> fmt::Debug for HttpResponseBody<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponseBody")
            .field("is_over", &self.connection.is_none())
            .finish_non_exhaustive()
    }
}
