use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::stream::Stream;
use tracing::Span;
use trunkline_protocol::RequestId;

use crate::call::{BoxFuture, CallState};
use crate::edge::{CallEvent, EraExchange, MessageStart};
use crate::message_tracing::log_sent;

/// The status of a modern call, for its cancellation.
pub(super) enum ModernCallStatus {
    Running(Arc<CallState>),
    /// It is being resumed from the suspended calls.
    Resuming,
    /// It was cancelled while it was being resumed.
    Cancelled,
}

/// A call that was not over at its first poll.
pub(super) enum ChannelCall {
    Running(EraExchange, Span),
    Deferred(RequestId, BoxFuture<'static, MessageStart>, Span),
    Done,
}

/// An item of a channel's stream of calls, which has two sources: the events of running calls, and deferred messages that
/// begin. An event is not wrapped for longer than this: the channel takes it out, unchanged, where it polls the stream.
pub(super) enum ChannelCallEvent {
    /// What the channel must do next; with the id of a modern call that is over then.
    Call(CallEvent, Option<RequestId>),
    /// A deferred message begins.
    Started(RequestId, MessageStart, Span),
}

impl ChannelCall {
    /// Returns how many calls it is.
    pub(super) fn calls(&self) -> usize {
        match self {
            Self::Running(exchange, _) => exchange.count(),
            Self::Deferred(..) => 1,
            Self::Done => 0,
        }
    }

    /// Reports whether it waits for a response of the client.
    pub(super) fn is_waiting_for_input(&self) -> bool {
        matches!(self, Self::Running(exchange, _) if exchange.is_waiting_for_input())
    }
}

impl Stream for ChannelCall {
    type Item = ChannelCallEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ChannelCallEvent>> {
        let this = self.get_mut();
        let event = match this {
            Self::Running(exchange, span) => loop {
                match ready!(exchange.poll_event(cx)) {
                    CallEvent::ReleaseStream(_) => {}
                    event @ CallEvent::Message(_) => {
                        return Poll::Ready(Some(ChannelCallEvent::Call(event, None)));
                    }
                    event => {
                        if matches!(event, CallEvent::Response(_)) {
                            log_sent(span);
                        }
                        break ChannelCallEvent::Call(event, exchange.modern_id().cloned());
                    }
                }
            },
            Self::Deferred(id, future, span) => {
                let start = ready!(future.as_mut().poll(cx));
                ChannelCallEvent::Started(id.clone(), start, span.clone())
            }
            Self::Done => return Poll::Ready(None),
        };
        *this = Self::Done;
        Poll::Ready(Some(event))
    }
}
