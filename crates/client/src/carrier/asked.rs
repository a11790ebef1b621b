use std::sync::Arc;

use trunkline_protocol::{Id, Request};

use super::channel::Shared;

/// A question of the server, from when it is read until somebody answers it.
///
/// On a channel nothing says within which request a question was asked. So a question that is dropped without an answer goes
/// back to where it came from: it may belong to another request, whose server would wait for ever.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Taken only when the question is given up.
    request: Option<Request>,
    home: Option<Arc<Shared>>,
    certain: bool,
}

impl Asked {
    /// Takes a question that came over a channel, together with whether it can belong to one request only.
    pub(super) fn over_channel(request: Request, home: Arc<Shared>, certain: bool) -> Self {
        Self { request: Some(request), home: Some(home), certain }
    }

    /// Returns the id under which it is answered.
    pub(crate) fn id(&self) -> Option<&Id> {
        self.request.as_ref().map(|request| &request.id)
    }

    /// Returns the request by which it was asked.
    pub(crate) fn request(&self) -> Option<&Request> {
        self.request.as_ref()
    }

    /// Reports whether it was certainly asked within the request that it was given to.
    pub(crate) fn is_certain(&self) -> bool {
        self.certain
    }

    /// Says that it is answered, or that the server wants no answer any more.
    pub(crate) fn settle(mut self) {
        self.home = None;
    }
}

/// A question whose request is known, as it is where every request has a stream of its own.
impl From<Request> for Asked {
    fn from(request: Request) -> Self {
        Self { request: Some(request), home: None, certain: true }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let (Some(home), Some(request)) = (self.home.take(), self.request.take()) {
            home.give_back(request, self.certain);
        }
    }
}
