use futures_util::future::BoxFuture;

use super::{ClientTransport, OutgoingMessage, OutgoingRequest, RequestExchange, TransportFailure};

/// The transport of a client without a server: every request fails with the same reason, and nothing is sent.
#[derive(Debug)]
pub(crate) struct StubTransport {
    reason: String,
}

impl StubTransport {
    pub(crate) fn new(reason: String) -> Self {
        Self { reason }
    }

    fn failure(&self) -> TransportFailure {
        TransportFailure::not_sent(self.reason.clone())
    }
}

impl ClientTransport for StubTransport {
    fn request(&self, _: OutgoingRequest) -> RequestExchange {
        RequestExchange::failed(self.failure())
    }

    fn post(&self, _: OutgoingMessage) -> BoxFuture<'static, Result<(), TransportFailure>> {
        Box::pin(std::future::ready(Err(self.failure())))
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn close_reason(&self) -> Option<String> {
        Some(self.reason.clone())
    }
}
