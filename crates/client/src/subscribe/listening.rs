//! Changes that a server tells of within a standing request.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Sleep, sleep, timeout};

use super::{Change, Watch};
use crate::call::Call;
use crate::carrier::{Arrived, Exchange};
use crate::client::Client;
use crate::edge::Extras;
use crate::error::{Error, Refused};

/// The longest time between two attempts to open a stream again.
const SLOWEST: Duration = Duration::from_secs(60);

/// A standing request, opened again whenever it ends.
#[derive(Debug)]
pub(super) struct Listening {
    client: Client,
    watch: Watch,
    state: State,
    pause: Duration,
}

enum State {
    Open(Exchange),
    /// Waiting before the next attempt.
    Paused(Pin<Box<Sleep>>),
    Opening(BoxFuture<'static, Result<(Exchange, Watch), Error>>),
    Over,
}

impl Listening {
    /// Opens the stream, and waits until the server has said what it will tell of.
    pub(super) async fn open(client: Client, watch: Watch, call: Call) -> Result<(Self, Watch), Error> {
        let pause = client.inner().plan.limits.reopen_after;
        let (exchange, honoured) = open(client.clone(), call).await?;
        Ok((Self { client, watch, state: State::Open(exchange), pause }, honoured))
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        loop {
            match &mut self.state {
                State::Over => return Poll::Ready(None),
                State::Open(exchange) => match ready!(exchange.poll_next(cx)) {
                    Some(Arrived::Notice(notice)) => {
                        if notice.method == "notifications/cancelled" {
                            self.pause();
                        } else if let Some(change) = Change::read(&notice) {
                            return Poll::Ready(Some(self.tell(change)));
                        }
                    }
                    Some(Arrived::Skipped) => return Poll::Ready(Some(self.tell(Change::Missed))),
                    Some(Arrived::Question(_)) => {}
                    Some(Arrived::Response(_) | Arrived::Lost(_)) | None => self.pause(),
                },
                State::Paused(sleep) => {
                    ready!(sleep.as_mut().poll(cx));
                    let session = self.client.inner().session.load_full();
                    self.state = match session.edge.listen(&self.watch) {
                        Some(call) => State::Opening(Box::pin(open(self.client.clone(), call))),
                        None => State::Over,
                    };
                }
                State::Opening(opening) => match ready!(opening.as_mut().poll(cx)) {
                    Ok((exchange, _)) => {
                        self.state = State::Open(exchange);
                        self.pause = self.client.inner().plan.limits.reopen_after;
                        // Nobody knows what changed while there was no stream.
                        return Poll::Ready(Some(self.tell(Change::Missed)));
                    }
                    Err(Error::Refused(refused)) => {
                        tracing::warn!(%refused, "the server tells of changes no longer");
                        self.state = State::Over;
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a stream of changes could not be opened again");
                        self.pause();
                    }
                },
            }
        }
    }

    fn tell(&self, change: Change) -> Change {
        self.client.inner().forget(&change);
        change
    }

    fn pause(&mut self) {
        if self.client.inner().carrier.is_over() {
            self.state = State::Over;
            return;
        }
        self.state = State::Paused(Box::pin(sleep(self.pause)));
        self.pause = (self.pause * 2).min(SLOWEST);
    }
}

/// Sends the standing request and waits for its acknowledgement.
async fn open(client: Client, call: Call) -> Result<(Exchange, Watch), Error> {
    let inner = client.inner();
    let session = inner.session.load_full();
    let outgoing = session.edge.write(inner.plan.ids.next(), &call, Extras::default())?;
    let mut exchange = inner.carrier.request(outgoing);
    let acknowledged = async {
        loop {
            match exchange.next().await {
                Some(Arrived::Notice(notice))
                    if notice.method == "notifications/subscriptions/acknowledged" =>
                {
                    return Ok(notice.params.get("notifications").map(Watch::read).unwrap_or_default());
                }
                Some(Arrived::Response(Err(error))) => return Err(Error::Refused(Refused::read(&error))),
                Some(Arrived::Lost(loss)) => return Err(loss.into()),
                Some(Arrived::Response(Ok(_))) | None => {
                    return Err(Error::Malformed("the stream of changes ended before it began".to_owned()));
                }
                Some(Arrived::Notice(_) | Arrived::Question(_) | Arrived::Skipped) => {}
            }
        }
    };
    let within = inner.plan.limits.silent_for;
    let honoured = timeout(within, acknowledged).await.map_err(|_| Error::TimedOut { after: within })??;
    Ok((exchange, honoured))
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open(_) => "Open",
            Self::Paused(_) => "Paused",
            Self::Opening(_) => "Opening",
            Self::Over => "Over",
        })
    }
}
