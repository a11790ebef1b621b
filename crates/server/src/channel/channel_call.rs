use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::stream::Stream;
use trunkline_protocol::RequestId;

use crate::call::{BoxFuture, CallState};
use crate::edge::CallEvent;
use crate::edge::legacy::LegacyExchange;
use crate::edge::modern::{self, ModernCall, SubscriptionStream};

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
    Modern(Box<ModernCall>),
    Legacy(LegacyExchange),
    Resuming(RequestId, BoxFuture<'static, modern::ModernStart>),
    Done,
}

/// An event of a channel's call; the id is that of a modern call which is then over.
pub(super) enum ChannelCallEvent {
    Message(String),
    Resumed(RequestId, Arc<CallState>),
    Subscribed(RequestId, Box<SubscriptionStream>),
    Response(Option<RequestId>, String),
    NoResponse(Option<RequestId>),
}

impl ChannelCall {
    /// Returns how many calls it is.
    pub(super) fn calls(&self) -> usize {
        match self {
            Self::Modern(_) | Self::Resuming(..) => 1,
            Self::Legacy(exchange) => exchange.count(),
            Self::Done => 0,
        }
    }

    /// Reports whether it waits for a response of the client.
    pub(super) fn is_waiting_for_input(&self) -> bool {
        matches!(self, Self::Legacy(exchange) if exchange.is_waiting_for_input())
    }
}

impl Stream for ChannelCall {
    type Item = ChannelCallEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ChannelCallEvent>> {
        let this = self.get_mut();
        loop {
            let (id, event) = match this {
                Self::Done => return Poll::Ready(None),
                Self::Modern(call) => {
                    let event = ready!(call.poll_event(cx));
                    (Some(call.id().clone()), event)
                }
                Self::Legacy(exchange) => (None, ready!(exchange.poll_event(cx))),
                Self::Resuming(id, future) => {
                    let (id, begun) = (id.clone(), ready!(future.as_mut().poll(cx)));
                    match begun {
                        modern::ModernStart::Call(call) => {
                            let shared = call.shared();
                            *this = Self::Modern(call);
                            match shared {
                                Some(shared) => {
                                    return Poll::Ready(Some(ChannelCallEvent::Resumed(id, shared)));
                                }
                                None => continue,
                            }
                        }
                        modern::ModernStart::Response(answer) => (Some(id), CallEvent::Response(answer)),
                        modern::ModernStart::Subscription(listen) => {
                            *this = Self::Done;
                            return Poll::Ready(Some(ChannelCallEvent::Subscribed(id, listen)));
                        }
                        modern::ModernStart::Deferred(..) => (Some(id), CallEvent::NoResponse),
                    }
                }
            };
            let call_event = match event {
                CallEvent::Message(message) => return Poll::Ready(Some(ChannelCallEvent::Message(message))),
                CallEvent::ReleaseStream(_) => continue,
                CallEvent::Response(answer) => ChannelCallEvent::Response(id, answer.message),
                CallEvent::NoResponse => ChannelCallEvent::NoResponse(id),
            };
            *this = Self::Done;
            return Poll::Ready(Some(call_event));
        }
    }
}
