use std::sync::Arc;

use trunkline_protocol::{Request, RequestId};

use super::channel::ChannelShared;

/// An input request of the server, until it is answered.
///
/// A channel does not attribute input requests to calls. So dropping an unanswered one returns it to the driver: it
/// may belong to another call, which would wait forever.
#[derive(Debug)]
pub(crate) struct ServerRequest {
    /// Taken only on drop.
    request: Option<Request>,
    origin: Option<Arc<ChannelShared>>,
    is_certain: bool,
}

impl ServerRequest {
    /// Creates one that arrived over a channel, with whether it can belong to one call only.
    pub(super) fn over_channel(request: Request, origin: Arc<ChannelShared>, is_certain: bool) -> Self {
        Self { request: Some(request), origin: Some(origin), is_certain }
    }

    /// Returns the id for the response.
    pub(crate) fn id(&self) -> Option<&RequestId> {
        self.request.as_ref().map(|request| &request.id)
    }

    /// Returns the JSON-RPC request.
    pub(crate) fn request(&self) -> Option<&Request> {
        self.request.as_ref()
    }

    /// Reports whether it certainly belongs to the call that received it.
    pub(crate) fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// Marks it as answered, or as cancelled by the server.
    pub(crate) fn resolve(mut self) {
        self.origin = None;
    }
}

/// Creates one that is attributed to its call, by a stream per request.
impl From<Request> for ServerRequest {
    fn from(request: Request) -> Self {
        Self { request: Some(request), origin: None, is_certain: true }
    }
}

impl Drop for ServerRequest {
    fn drop(&mut self) {
        if let (Some(origin), Some(request)) = (self.origin.take(), self.request.take()) {
            origin.return_request(request, self.is_certain);
        }
    }
}
