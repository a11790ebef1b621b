use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::stream::Stream;
use trunkline_protocol::Id;

use crate::call::{BoxFuture, Shared};
use crate::edge::Event;
use crate::edge::legacy::LegacyExchange;
use crate::edge::modern::{self, Listen, ModernCall};

/// A modern call, as far as its cancellation goes.
pub(super) enum Cancellable {
    Running(Arc<Shared>),
    /// It is being handed over by those who kept it parked.
    Resuming,
    /// It was cancelled while it was being handed over.
    Cancelled,
}

/// A call that was not over at its first poll.
pub(super) enum Carried {
    Modern(Box<ModernCall>),
    Legacy(LegacyExchange),
    Resuming(Id, BoxFuture<'static, modern::Begun>),
    Over,
}

/// What a carried call has to say; the id is that of a modern call which is then over.
pub(super) enum Said {
    Message(String),
    Resumed(Id, Arc<Shared>),
    Listens(Id, Box<Listen>),
    Answer(Option<Id>, String),
    Nothing(Option<Id>),
}

impl Carried {
    /// Returns how many calls it is.
    pub(super) fn calls(&self) -> usize {
        match self {
            Self::Modern(_) | Self::Resuming(..) => 1,
            Self::Legacy(exchange) => exchange.count(),
            Self::Over => 0,
        }
    }

    /// Reports whether it waits for an answer of the client.
    pub(super) fn is_asking(&self) -> bool {
        matches!(self, Self::Legacy(exchange) if exchange.is_asking())
    }
}

impl Stream for Carried {
    type Item = Said;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Said>> {
        let this = self.get_mut();
        loop {
            let (id, event) = match this {
                Self::Over => return Poll::Ready(None),
                Self::Modern(call) => {
                    let event = ready!(call.poll_event(cx));
                    (Some(call.id().clone()), event)
                }
                Self::Legacy(exchange) => (None, ready!(exchange.poll_event(cx))),
                Self::Resuming(id, future) => {
                    let (id, begun) = (id.clone(), ready!(future.as_mut().poll(cx)));
                    match begun {
                        modern::Begun::Call(call) => {
                            let shared = call.shared();
                            *this = Self::Modern(call);
                            match shared {
                                Some(shared) => return Poll::Ready(Some(Said::Resumed(id, shared))),
                                None => continue,
                            }
                        }
                        modern::Begun::Answer(answer) => (Some(id), Event::Answer(answer)),
                        modern::Begun::Listen(listen) => {
                            *this = Self::Over;
                            return Poll::Ready(Some(Said::Listens(id, listen)));
                        }
                        modern::Begun::Resume(..) => (Some(id), Event::Nothing),
                    }
                }
            };
            let said = match event {
                Event::Message(message) => return Poll::Ready(Some(Said::Message(message))),
                Event::Release(_) => continue,
                Event::Answer(answer) => Said::Answer(id, answer.message),
                Event::Nothing => Said::Nothing(id),
            };
            *this = Self::Over;
            return Poll::Ready(Some(said));
        }
    }
}
