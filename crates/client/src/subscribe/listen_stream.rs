//! Change streams over `subscriptions/listen` (modern era).

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Sleep, sleep, timeout};

use super::{ChangeEvent, ChangeFilter};
use crate::call::ClientCall;
use crate::client::Client;
use crate::client_transport::{ExchangeEvent, RequestExchange};
use crate::edge::RequestExtras;
use crate::error::{Error, ErrorResponse};
use crate::wire_tap::ObservedRequest;

/// The longest delay between two attempts to reopen a stream.
const MAX_REOPEN_DELAY: Duration = Duration::from_secs(60);

/// A `subscriptions/listen` request, reopened whenever it ends.
#[derive(Debug)]
pub(super) struct ListenChangeStream {
    client: Client,
    filter: ChangeFilter,
    state: ListenState,
    reopen_delay: Duration,
}

enum ListenState {
    Open(RequestExchange),
    /// Waiting before the next attempt.
    Paused(Pin<Box<Sleep>>),
    Opening(BoxFuture<'static, Result<(RequestExchange, ChangeFilter), Error>>),
    Closed,
}

impl ListenChangeStream {
    /// Opens the stream, and waits for the server's acknowledgement.
    pub(super) async fn open(
        client: Client,
        filter: ChangeFilter,
        call: ClientCall,
    ) -> Result<(Self, ChangeFilter), Error> {
        let reopen_delay = client.inner().plan.limits.reopen_delay;
        let (exchange, accepted) = open_listen_request(client.clone(), call).await?;
        Ok((Self { client, filter, state: ListenState::Open(exchange), reopen_delay }, accepted))
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<ChangeEvent>> {
        loop {
            match &mut self.state {
                ListenState::Closed => return Poll::Ready(None),
                ListenState::Open(exchange) => match ready!(exchange.poll_next(cx)) {
                    Some(ExchangeEvent::Notification(notification)) => {
                        if notification.method == "notifications/cancelled" {
                            self.schedule_reopen();
                        } else if let Some(change) = ChangeEvent::read(&notification) {
                            return Poll::Ready(Some(self.record_change(change)));
                        }
                    }
                    Some(ExchangeEvent::Skipped) => {
                        return Poll::Ready(Some(self.record_change(ChangeEvent::Missed)));
                    }
                    Some(ExchangeEvent::Request(_)) => {}
                    Some(ExchangeEvent::Response(_) | ExchangeEvent::Failed(_)) | None => {
                        self.schedule_reopen();
                    }
                },
                ListenState::Paused(sleep) => {
                    ready!(sleep.as_mut().poll(cx));
                    let session = self.client.inner().session.load_full();
                    self.state = match session.edge.listen_call(&self.filter) {
                        Some(call) => {
                            ListenState::Opening(Box::pin(open_listen_request(self.client.clone(), call)))
                        }
                        None => ListenState::Closed,
                    };
                }
                ListenState::Opening(opening) => match ready!(opening.as_mut().poll(cx)) {
                    Ok((exchange, _)) => {
                        self.state = ListenState::Open(exchange);
                        self.reopen_delay = self.client.inner().plan.limits.reopen_delay;
                        // Changes may have been missed while the stream was down.
                        return Poll::Ready(Some(self.record_change(ChangeEvent::Missed)));
                    }
                    Err(Error::ErrorResponse(refused)) => {
                        tracing::warn!(%refused, "the server tells of changes no longer");
                        self.state = ListenState::Closed;
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a stream of changes could not be opened again");
                        self.schedule_reopen();
                    }
                },
            }
        }
    }

    fn record_change(&self, change: ChangeEvent) -> ChangeEvent {
        self.client.inner().invalidate_cache(&change);
        change
    }

    fn schedule_reopen(&mut self) {
        if self.client.inner().transport.is_closed() {
            self.state = ListenState::Closed;
            return;
        }
        self.state = ListenState::Paused(Box::pin(sleep(self.reopen_delay)));
        self.reopen_delay = (self.reopen_delay * 2).min(MAX_REOPEN_DELAY);
    }
}

/// Sends `subscriptions/listen` and waits for its acknowledgement.
async fn open_listen_request(
    client: Client,
    call: ClientCall,
) -> Result<(RequestExchange, ChangeFilter), Error> {
    let inner = client.inner();
    let session = inner.session.load_full();
    let outgoing = session.edge.write(inner.plan.ids.next(), &call, RequestExtras::default())?;
    let observed = ObservedRequest::begin(inner.plan.observer.as_ref(), &session.info, &outgoing, None);
    let mut exchange = inner.transport.request(outgoing).observed(observed);
    let acknowledged = async {
        loop {
            match exchange.next().await {
                Some(ExchangeEvent::Notification(notification))
                    if notification.method == "notifications/subscriptions/acknowledged" =>
                {
                    return Ok(notification
                        .params
                        .get("notifications")
                        .map(ChangeFilter::read)
                        .unwrap_or_default());
                }
                Some(ExchangeEvent::Response(Err(error))) => {
                    return Err(Error::ErrorResponse(ErrorResponse::from_raw(&error)));
                }
                Some(ExchangeEvent::Failed(failure)) => return Err(failure.into()),
                Some(ExchangeEvent::Response(Ok(_))) | None => {
                    return Err(Error::Malformed("the stream of changes ended before it began".to_owned()));
                }
                Some(ExchangeEvent::Notification(_) | ExchangeEvent::Request(_) | ExchangeEvent::Skipped) => {
                }
            }
        }
    };
    let within = inner.plan.limits.request_timeout;
    let accepted = timeout(within, acknowledged).await.map_err(|_| Error::TimedOut { after: within })??;
    Ok((exchange, accepted))
}

impl fmt::Debug for ListenState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open(_) => "Open",
            Self::Paused(_) => "Paused",
            Self::Opening(_) => "Opening",
            Self::Closed => "Over",
        })
    }
}
