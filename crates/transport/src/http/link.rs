use std::fmt;
use std::pin::pin;
use std::task::{Context, Waker};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;

use super::client::HttpRequest;
use super::counted::{Counted, Written};
use super::error::{HttpError, Reach};
use crate::dial::{Dialer, Form, Stream, Tunnel};
use crate::url::Url;

/// The headers of a response, all together.
const MOST_HEAD_BYTES: usize = 64 * 1024;

/// The number of headers of a response.
const MOST_HEADERS: usize = 100;

/// What is read ahead of whoever reads a body.
const READ_AHEAD_BYTES: usize = 128 * 1024;

type Driver = Connection<TokioIo<Counted>, Full<Bytes>>;

/// One connection that requests go over, one after another.
///
/// It has no task of its own: whoever waits for the response drives it, so that nobody has to be woken in between.
pub(crate) struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// In a box, since a connection goes from hand to hand with every request.
    driver: Box<Driver>,
    /// The driver must not be polled any more.
    is_over: bool,
    written: Written,
    /// What a request needs to go through a proxy that reads it: how the address begins, and the proxy's credentials.
    proxied: Option<(String, Option<HeaderValue>)>,
}

/// A request that failed.
pub(super) struct Failed {
    pub(super) error: HttpError,
    /// The request, if it can be sent over another connection.
    pub(super) unsent: Option<Request<Full<Bytes>>>,
}

impl Link {
    pub(crate) async fn open(dialer: &Dialer, origin: &Url, tunnel: Tunnel) -> Result<Self, HttpError> {
        let (stream, _, form) = dialer.open(origin, tunnel).await?;
        let (stream, written) = Counted::new(stream);
        let (sender, driver) = http1::Builder::new()
            .max_headers(MOST_HEADERS)
            .max_header_size(MOST_HEAD_BYTES)
            .max_buf_size(READ_AHEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| HttpError::from_hyper(&error, Reach::NotReached))?;
        let proxied = match form {
            Form::Origin => None,
            Form::Proxied(proxy) => Some((origin.origin(), proxy.authorization())),
        };
        Ok(Self { sender, driver: Box::new(driver), is_over: false, written, proxied })
    }

    /// Lets the connection do what it can; what is wrong with it is told to whoever waits for the response.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        self.is_over = self.is_over || self.driver.poll_without_shutdown(cx).is_ready();
    }

    /// Returns itself if another request can go over it.
    pub(super) fn if_reusable(mut self) -> Option<Self> {
        // What the server did meanwhile, such as leaving, is seen by looking.
        self.drive(&mut Context::from_waker(Waker::noop()));
        (!self.is_over && self.sender.is_ready()).then_some(self)
    }

    /// Makes the request that is written to this connection.
    pub(super) fn prepare(&self, request: HttpRequest) -> Request<Full<Bytes>> {
        let HttpRequest { method, place, headers, body } = request;
        let mut prepared = Request::new(Full::new(body));
        *prepared.method_mut() = method;
        *prepared.headers_mut() = headers;
        prepared.headers_mut().insert(header::HOST, place.host);
        *prepared.uri_mut() = place.uri;
        self.adapt(prepared)
    }

    /// Gives a request the form that this connection needs, whatever form it had.
    pub(super) fn adapt(&self, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
        if let Some((origin, credentials)) = &self.proxied {
            let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
            if let Ok(whole) = format!("{origin}{path}").parse::<Uri>() {
                *request.uri_mut() = whole;
            }
            if let Some(credentials) = credentials {
                request.headers_mut().insert(header::PROXY_AUTHORIZATION, credentials.clone());
            }
        }
        request
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Failed> {
        let before = self.written.get();
        let mut response = pin!(self.sender.try_send_request(request));
        let outcome = std::future::poll_fn(|cx| {
            self.drive(cx);
            response.as_mut().poll(cx)
        })
        .await;
        outcome.map_err(|mut failed| {
            let reach = if self.written.get() == before { Reach::NotReached } else { Reach::MayHaveReached };
            let unsent = failed.take_message().filter(|_| reach == Reach::NotReached);
            Failed { error: HttpError::from_hyper(failed.error(), reach), unsent }
        })
    }

    /// Takes the connection out, with what was read ahead, after a response that has switched protocols.
    pub(crate) fn into_stream(self) -> (Stream, Bytes) {
        let parts = (*self.driver).into_parts();
        (parts.io.into_inner().into_inner(), parts.read_buf)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}
