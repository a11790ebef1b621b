use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::ending::{Ended, Ending};
use super::error::{HttpError, Reach};
use super::link::Link;
use super::pool::Pool;
use crate::dial::Stream;
use crate::http1::{Framing, Taken};

/// The body of a response, read as it arrives.
///
/// Once it was read to its end, its connection is kept for the next request. Dropping it earlier closes the connection.
pub struct ResponseBody {
    framing: Framing,
    /// Gone once the body is over, or broke.
    link: Option<Box<Link>>,
    pool: Arc<Pool>,
    /// How long the connection is kept afterwards; zero for not at all.
    keep: Duration,
}

impl ResponseBody {
    pub(super) fn new(framing: Framing, link: Box<Link>, pool: Arc<Pool>, keep: Duration) -> Self {
        Self { framing, link: Some(link), pool, keep }
    }

    /// Polls for the next piece; `None` is the end. Cancel safe.
    ///
    /// # Errors
    /// The connection broke before the end.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError>>> {
        let Some(link) = &mut self.link else { return Poll::Ready(None) };
        let error = loop {
            match self.framing.take(link.incoming()) {
                Ok(Taken::Data(data)) => return Poll::Ready(Some(Ok(data))),
                Ok(Taken::End) => {
                    self.give_back();
                    return Poll::Ready(None);
                }
                Ok(Taken::More) => match ready!(link.poll_fill(cx, self.framing.at_least())) {
                    Ok(0) if self.framing == Framing::UntilClose => {
                        self.link = None;
                        return Poll::Ready(None);
                    }
                    Ok(0) => break broken(&io::ErrorKind::UnexpectedEof.into()),
                    Ok(_) => {}
                    Err(error) => break broken(&error),
                },
                Err(problem) => break HttpError::Malformed(problem.to_owned()),
            }
        };
        self.link = None;
        Poll::Ready(Some(Err(error)))
    }

    /// Gives the connection back, since the body is over.
    fn give_back(&mut self) {
        if let Some(link) = self.link.take() {
            self.pool.give(link, self.keep);
        }
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
        if self.framing.at_least() > limit as u64 {
            return Err(too_long());
        }
        let Some(first) = self.chunk().await.transpose()? else { return Ok(Bytes::new()) };
        // Nearly always one piece is all there is, and need not be copied.
        let second = if self.framing.is_over() { None } else { self.chunk().await.transpose()? };
        let Some(second) = second else {
            self.give_back();
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

    /// Gives the rest up, which is expected to be nothing or a few words: the connection is used again if it is.
    pub fn finish(self) {
        let Self { framing, link, pool, keep } = self;
        let Some(link) = link else { return };
        let mut ending = Ending::new(framing, link);
        match ending.look() {
            Ended::Free => pool.give(ending.into_link(), keep),
            Ended::NotYet => pool.give_ending(ending, keep),
            Ended::Wrong => {}
        }
    }

    /// Takes the connection, with what was read ahead of it.
    pub(crate) fn into_stream(self) -> Option<(Stream, Bytes)> {
        self.link.map(|link| link.into_stream())
    }
}

fn broken(error: &io::Error) -> HttpError {
    HttpError::broken(error, Reach::MayHaveReached)
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("is_over", &self.link.is_none()).finish_non_exhaustive()
    }
}
