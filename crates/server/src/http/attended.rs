use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::TryFutureExt as _;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};

use super::patience::{Answering, Signs};

/// Lets a connection know which requests are being answered: from their heads until the last of the answer is taken.
pub(super) fn attended<S, B>(
    service: S,
    signs: Signs,
) -> impl Service<
    Request<Incoming>,
    Response = Response<Attended<B>>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<Attended<B>>, Infallible>> + use<S, B>,
>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    B: Body,
{
    service_fn(move |request| {
        let answering = signs.asked();
        service.call(request).map_ok(|response| {
            answering.begun();
            response.map(|body| Attended { body, answering })
        })
    })
}

pin_project_lite::pin_project! {
    /// The body of an answer.
    pub(super) struct Attended<B> {
        #[pin]
        body: B,
        answering: Answering,
    }
}

impl<B: Body> Body for Attended<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
