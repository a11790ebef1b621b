use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Body;

use crate::call::BoxFuture;
use crate::http::stream::PolledFrame;

/// A stream that ends with the credential that opened it. What drives the stream is dropped then, and its calls with it.
pub(in crate::http) struct GrantBoundBody {
    stream: Option<Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>>,
    end: BoxFuture<'static, ()>,
}

impl GrantBoundBody {
    pub(in crate::http) fn new(
        stream: Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>,
        end: BoxFuture<'static, ()>,
    ) -> Self {
        Self { stream: Some(stream), end }
    }
}

impl Body for GrantBoundBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = self.get_mut();
        let Some(stream) = &mut this.stream else { return Poll::Ready(None) };
        if this.end.as_mut().poll(cx).is_ready() {
            tracing::debug!("a stream ended with its credential");
            this.stream = None;
            return Poll::Ready(None);
        }
        stream.as_mut().poll_frame(cx)
    }
}
