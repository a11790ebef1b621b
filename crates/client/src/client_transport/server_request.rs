use std::sync::Arc;

use trunkline_protocol::{Request, RequestId};

use super::channel::ChannelShared;

/// A question of the server, from when it is read until somebody answers it.
///
/// On a channel nothing says within which request a question was asked. So a question that is dropped without an answer goes
/// back to where it came from: it may belong to another request, whose server would wait for ever.
#[derive(Debug)]
pub(crate) struct ServerRequest {
    /// Taken only when the question is given up.
    request: Option<Request>,
    origin: Option<Arc<ChannelShared>>,
    is_certain: bool,
}

impl ServerRequest {
    /// Takes a question that came over a channel, together with whether it can belong to one request only.
    pub(super) fn over_channel(request: Request, home: Arc<ChannelShared>, certain: bool) -> Self {
        Self { request: Some(request), origin: Some(home), is_certain: certain }
    }

    /// Returns the id under which it is answered.
    pub(crate) fn id(&self) -> Option<&RequestId> {
        self.request.as_ref().map(|request| &request.id)
    }

    /// Returns the request by which it was asked.
    pub(crate) fn request(&self) -> Option<&Request> {
        self.request.as_ref()
    }

    /// Reports whether it was certainly asked within the request that it was given to.
    pub(crate) fn is_certain(&self) -> bool {
        self.is_certain
    }

    /// Says that it is answered, or that the server wants no answer any more.
    pub(crate) fn resolve(mut self) {
        self.origin = None;
    }
}

/// A question whose request is known, as it is where every request has a stream of its own.
impl From<Request> for ServerRequest {
    fn from(request: Request) -> Self {
        Self { request: Some(request), origin: None, is_certain: true }
    }
}

impl Drop for ServerRequest {
    fn drop(&mut self) {
        if let (Some(home), Some(request)) = (self.origin.take(), self.request.take()) {
            home.return_request(request, self.is_certain);
        }
    }
}
