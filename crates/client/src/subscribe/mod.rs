//! Changes that a server tells of, as one stream in both eras.
//!
//! A session tells of them by the way; a server without sessions tells of them within a standing request. Either way a
//! change that nobody has looked at yet is not told twice, so that a stream which is never read costs no more than a bound.

mod change;
mod listen_stream;
mod session_stream;

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;

pub use self::change::is_sub_resource;
pub use self::change::{ChangeEvent, ChangeFilter};
use self::listen_stream::ListenChangeStream;
pub(crate) use self::session_stream::ChangeBroadcaster;
use self::session_stream::SessionChangeStream;
use crate::client::Client;
use crate::error::Error;

/// A stream of changes; dropping it ends the watching, at the server too.
///
/// It ends when the connection does. After [`ChangeEvent::Missed`] anything may have changed.
#[must_use = "changes are told as the stream is read"]
#[derive(Debug)]
pub struct ChangeStream {
    accepted_filter: ChangeFilter,
    source: ChangeSource,
}

#[derive(Debug)]
enum ChangeSource {
    Session(SessionChangeStream),
    Listen(Box<ListenChangeStream>),
}

impl ChangeStream {
    pub(crate) async fn open(client: Client, watch: ChangeFilter) -> Result<Self, Error> {
        if watch.is_too_large() {
            return Err(Error::Invalid(format!(
                "more than {} resources are to be watched",
                ChangeFilter::MAX_URIS
            )));
        }
        let session = client.inner().session.load_full();
        let offered = watch.supported_by(&session.info.capabilities);
        if offered.is_empty() && !watch.is_empty() {
            return Err(Error::Unsupported("the server tells of none of these changes".to_owned()));
        }
        let (honoured, source) = match session.edge.listen_call(&offered) {
            Some(call) => {
                let (listening, honoured) = ListenChangeStream::open(client, offered, call).await?;
                (honoured, ChangeSource::Listen(Box::new(listening)))
            }
            None => {
                (offered.clone(), ChangeSource::Session(SessionChangeStream::open(&client, offered).await?))
            }
        };
        Ok(Self { accepted_filter: honoured, source })
    }

    /// Returns what the server agreed to tell of.
    pub fn accepted_filter(&self) -> &ChangeFilter {
        &self.accepted_filter
    }
}

impl Stream for ChangeStream {
    type Item = ChangeEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ChangeEvent>> {
        match &mut self.source {
            ChangeSource::Session(watching) => watching.poll_next(cx),
            ChangeSource::Listen(listening) => listening.poll_next(cx),
        }
    }
}
