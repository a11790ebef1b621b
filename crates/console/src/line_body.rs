use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http_body::{Body, Frame};

/// A response of lines, which are written as they come.
pub(crate) struct LineBody(Pin<Box<dyn Stream<Item = Bytes> + Send>>);

impl LineBody {
    /// Makes a response that begins at once with a blank line, even if nothing comes for a while.
    pub(crate) fn new(lines: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Box::pin(stream::iter([Bytes::from_static(b"\n")]).chain(lines)))
    }
}

impl Body for LineBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.as_mut().poll_next(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}
