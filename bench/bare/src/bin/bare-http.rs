//! `bare-http ADDRESS`: hyper's HTTP/1 server and nothing above it.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bare::Outcome;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).ok_or_else(|| io::Error::other("usage: bare-http ADDRESS"))?;
    let listener = TcpListener::bind(address).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let connection = http1::Builder::new().serve_connection(TokioIo::new(socket), service_fn(respond));
        tokio::spawn(async move {
            // A peer that hangs up is the ordinary end of a connection here.
            let _ = connection.await;
        });
    }
}

async fn respond(request: Request<Incoming>) -> hyper::Result<Response<Answer>> {
    if request.method() == Method::GET {
        // The comment lets the client see that the stream is open.
        return Ok(stream(Bytes::from_static(b": open\n\n")));
    }
    let message = request.into_body().collect().await?.to_bytes();
    let mut out = Vec::with_capacity(message.len() + 256);
    Ok(match bare::answer(&message, &mut out) {
        Ok(Outcome::Answered) => json(out),
        Ok(Outcome::Opened) => opened(out),
        Ok(Outcome::Listening) => stream(out.into()),
        Ok(Outcome::Silent) => empty(StatusCode::ACCEPTED),
        Err(_) => empty(StatusCode::BAD_REQUEST),
    })
}

fn json(body: Vec<u8>) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(Some(body.into())));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Answers `initialize`; the session's name is a number, since it is never looked up.
fn opened(body: Vec<u8>) -> Response<Answer> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut response = json(body);
    let name = HeaderValue::from(NEXT.fetch_add(1, Ordering::Relaxed));
    response.headers_mut().insert("mcp-session-id", name);
    response
}

fn stream(first: Bytes) -> Response<Answer> {
    let mut response = Response::new(Answer::Standing(Some(first)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

fn empty(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(None));
    *response.status_mut() = status;
    response
}

/// A body in one piece, or one that stays open after its first piece.
enum Answer {
    Whole(Option<Bytes>),
    Standing(Option<Bytes>),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(piece) => Poll::Ready(piece.take().map(|piece| Ok(Frame::data(piece)))),
            // Nothing ever wakes the stream again; only the client ends it.
            Self::Standing(piece) => match piece.take() {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                None => Poll::Pending,
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(piece) => SizeHint::with_exact(piece.as_ref().map_or(0, |piece| piece.len() as u64)),
            Self::Standing(_) => SizeHint::default(),
        }
    }
}
