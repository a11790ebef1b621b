use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body as _, Incoming};

use super::ending::{Ended, Ending};
use super::error::{HttpError, Reach};
use super::link::Link;
use super::pool::Pool;
use crate::dial::Stream;

/// The body of a response, read as it arrives.
///
/// Once it was read to its end, its connection is kept for the next request. Dropping it earlier closes the connection.
pub struct ResponseBody {
    incoming: Incoming,
    link: Option<Link>,
    pool: Arc<Pool>,
    keep: Duration,
}

impl ResponseBody {
    pub(super) fn new(incoming: Incoming, link: Link, pool: Arc<Pool>, keep: Duration) -> Self {
        Self { incoming, link: Some(link), pool, keep }
    }

    /// Polls for the next piece; `None` is the end. Cancel safe.
    ///
    /// # Errors
    /// The connection broke before the end.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError>>> {
        loop {
            let frame = match self.poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(frame) => frame,
            };
            return Poll::Ready(match frame {
                None => {
                    if let Some(link) = self.link.take() {
                        self.pool.give(link, self.keep);
                    }
                    None
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => Some(Ok(data)),
                    // Trailers say nothing to us.
                    Err(_) => continue,
                },
                Some(Err(error)) => {
                    self.link = None;
                    Some(Err(HttpError::from_hyper(&error, Reach::MayHaveReached)))
                }
            });
        }
    }

    /// Asks for a frame, and lets the connection read it if it is not there yet.
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        let Some(link) = &mut self.link else { return Poll::Pending };
        link.drive(cx);
        Pin::new(&mut self.incoming).poll_frame(cx)
    }

    /// Waits for the next piece; `None` is the end. Cancel safe.
    ///
    /// # Errors
    /// The connection broke before the end.
    pub async fn chunk(&mut self) -> Option<Result<Bytes, HttpError>> {
        std::future::poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Reads all of it, up to a limit.
    ///
    /// # Errors
    /// The connection broke before the end, or the body is longer than the limit.
    pub async fn read_all(&mut self, limit: usize) -> Result<Bytes, HttpError> {
        let too_long = || HttpError::TooLong { limit };
        if self.incoming.size_hint().lower() > limit as u64 {
            return Err(too_long());
        }
        let Some(first) = self.chunk().await.transpose()? else { return Ok(Bytes::new()) };
        // Nearly always one piece is all there is, and need not be copied.
        let Some(second) = self.chunk().await.transpose()? else {
            return if first.len() > limit { Err(too_long()) } else { Ok(first) };
        };
        let mut all = BytesMut::with_capacity(first.len() + second.len());
        all.extend_from_slice(&first);
        all.extend_from_slice(&second);
        while let Some(more) = self.chunk().await.transpose()? {
            if all.len() + more.len() > limit {
                return Err(too_long());
            }
            all.extend_from_slice(&more);
        }
        if all.len() > limit { Err(too_long()) } else { Ok(all.freeze()) }
    }

    /// Reads the beginning, for people: at most `limit` bytes of it, and nothing if it breaks before.
    pub async fn read_beginning(&mut self, limit: usize) -> Bytes {
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

    /// Gives the rest up, which is expected to be nothing: the connection is used again if it is.
    pub fn finish(self) {
        let Self { incoming, link, pool, keep } = self;
        let Some(link) = link else { return };
        match Ending::new(incoming, link).look() {
            Ended::Free(link) => pool.give(link, keep),
            Ended::NotYet(ending) => pool.give_ending(ending, keep),
            Ended::Wrong => {}
        }
    }

    /// Takes the connection, with what was read ahead of it.
    pub(crate) fn into_stream(self) -> Option<(Stream, Bytes)> {
        self.link.map(Link::into_stream)
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("is_over", &self.link.is_none()).finish_non_exhaustive()
    }
}
