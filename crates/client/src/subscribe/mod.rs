//! Changes that a server tells of, as one stream in both eras.
//!
//! A session tells of them by the way; a server without sessions tells of them within a standing request. Either way a
//! change that nobody has looked at yet is not told twice, so that a stream which is never read costs no more than a bound.

mod change;
mod listening;
mod watching;

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;

pub use self::change::is_part_of;
pub use self::change::{Change, Watch};
use self::listening::Listening;
pub(crate) use self::watching::Changes;
use self::watching::Watching;
use crate::client::Client;
use crate::error::Error;

/// A stream of changes; dropping it ends the watching, at the server too.
///
/// It ends when the connection does. After [`Change::Missed`] anything may have changed.
#[must_use = "changes are told as the stream is read"]
#[derive(Debug)]
pub struct Subscription {
    honoured: Watch,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Watching(Watching),
    Listening(Box<Listening>),
}

impl Subscription {
    pub(crate) async fn open(client: Client, watch: Watch) -> Result<Self, Error> {
        if watch.is_too_large() {
            return Err(Error::Invalid(format!(
                "more than {} resources are to be watched",
                Watch::MOST_URIS
            )));
        }
        let session = client.inner().session.load_full();
        let offered = watch.within(&session.info.capabilities);
        if offered.is_empty() && !watch.is_empty() {
            return Err(Error::Unsupported("the server tells of none of these changes".to_owned()));
        }
        let (honoured, source) = match session.edge.listen(&offered) {
            Some(call) => {
                let (listening, honoured) = Listening::open(client, offered, call).await?;
                (honoured, Source::Listening(Box::new(listening)))
            }
            None => (offered.clone(), Source::Watching(Watching::open(&client, offered).await?)),
        };
        Ok(Self { honoured, source })
    }

    /// Returns what the server agreed to tell of.
    pub fn honoured(&self) -> &Watch {
        &self.honoured
    }
}

impl Stream for Subscription {
    type Item = Change;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        match &mut self.source {
            Source::Watching(watching) => watching.poll_next(cx),
            Source::Listening(listening) => listening.poll_next(cx),
        }
    }
}
