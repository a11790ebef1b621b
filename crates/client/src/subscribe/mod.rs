//! Change notifications, as one stream in both eras.
//!
//! A legacy session sends them as unsolicited notifications; a modern server sends them within a
//! `subscriptions/listen` request. In both cases equal changes that are not read yet are merged, so that the memory
//! of an unread stream is bounded.

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

/// A stream of changes; dropping it unsubscribes, also at the server.
///
/// It ends with the connection. After [`ChangeEvent::Missed`] anything may have changed.
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
    pub(crate) async fn open(client: Client, filter: ChangeFilter) -> Result<Self, Error> {
        if filter.is_too_large() {
            return Err(Error::Invalid(format!(
                "more than {} resources are to be watched",
                ChangeFilter::MAX_URIS
            )));
        }
        let session = client.inner().session.load_full();
        let offered = filter.supported_by(&session.info.capabilities);
        if offered.is_empty() && !filter.is_empty() {
            return Err(Error::Unsupported("the server tells of none of these changes".to_owned()));
        }
        let (accepted_filter, source) = match session.edge.listen_call(&offered) {
            Some(call) => {
                let (stream, accepted_filter) = ListenChangeStream::open(client, offered, call).await?;
                (accepted_filter, ChangeSource::Listen(Box::new(stream)))
            }
            None => {
                (offered.clone(), ChangeSource::Session(SessionChangeStream::open(&client, offered).await?))
            }
        };
        Ok(Self { accepted_filter, source })
    }

    /// Returns the changes that the server agreed to report.
    pub fn accepted_filter(&self) -> &ChangeFilter {
        &self.accepted_filter
    }
}

impl Stream for ChangeStream {
    type Item = ChangeEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ChangeEvent>> {
        match &mut self.source {
            ChangeSource::Session(stream) => stream.poll_next(cx),
            ChangeSource::Listen(stream) => stream.poll_next(cx),
        }
    }
}
