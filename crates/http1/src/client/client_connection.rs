use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{Method, StatusCode};
use tokio::task::unconstrained;

use super::connect::{ClientConnector, ClientStream, RequestForm};
use super::error::{HttpError, RequestDelivery};
use super::head::{self, ResponseHead};
use super::http_client::HttpRequest;
use crate::url::Url;
use crate::{BodyFraming, MAX_COPIED_BODY, ReadBuffer};

/// Responses before the real one, such as `100 Continue`.
const MAX_INTERIM_RESPONSES: usize = 16;

/// One connection that requests go over, one after another.
///
/// It has no task of its own: the task that waits for the response reads it, so that no other task has to be woken.
pub(super) struct ClientConnection<S> {
    stream: S,
    read_buffer: ReadBuffer,
    /// The head of the request, and its body if that is small.
    write_buffer: Vec<u8>,
    /// What a request needs to go through a proxy that reads it.
    proxied: Option<ProxiedRequestForm>,
}

/// How requests look that a proxy reads.
struct ProxiedRequestForm {
    /// How the address begins.
    origin: String,
    /// The line with the proxy's credentials, if it wants any.
    credentials: Vec<u8>,
}

/// A request that failed.
pub(super) struct SendFailure<E: Error> {
    pub(super) error: HttpError<E>,
    /// Whether it may be sent over another connection.
    pub(super) is_unsent: bool,
}

impl<S: ClientStream> ClientConnection<S> {
    pub(super) async fn open<C: ClientConnector<Stream = S>>(
        connector: &C,
        origin: &Url,
    ) -> Result<Box<Self>, HttpError<C::Error>> {
        let (stream, form) = connector.connect(origin).await.map_err(HttpError::Dial)?;
        let proxied = match form {
            RequestForm::Origin => None,
            RequestForm::Absolute(lines) => {
                Some(ProxiedRequestForm { origin: origin.origin(), credentials: lines.as_bytes().to_vec() })
            }
        };
        Ok(Box::new(Self { stream, read_buffer: ReadBuffer::default(), write_buffer: Vec::new(), proxied }))
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send<E: Error>(
        &mut self,
        request: &HttpRequest,
        used: ConnectionUse,
    ) -> Result<ResponseHead, SendFailure<E>> {
        self.read_buffer.begin_message();
        self.write_head(request);
        let is_copied = request.body.len() <= MAX_COPIED_BODY;
        if is_copied {
            self.write_buffer.extend_from_slice(&request.body);
        }
        let apart = if is_copied { &[] } else { &request.body[..] };
        let mut exchange = ExchangeProgress { connection_use: used, ..ExchangeProgress::default() };
        let mut outcome = poll_fn(|cx| self.poll_exchange(cx, &mut exchange, apart)).await;
        if let (Ok(head), &Method::HEAD) = (&mut outcome, &request.method) {
            // The head has the length that a body would have, and there is none (RFC 9110, section 9.3.2).
            head.framing = BodyFraming::Length(0);
        }
        self.write_buffer.clear();
        self.write_buffer.shrink_to(2 * MAX_COPIED_BODY);
        outcome.map_err(|wrong| {
            let delivery =
                if exchange.sent == 0 { RequestDelivery::NotSent } else { RequestDelivery::MaybeSent };
            let is_unsent = delivery == RequestDelivery::NotSent;
            SendFailure { error: wrong.into_error(delivery), is_unsent }
        })
    }

    fn write_head(&mut self, request: &HttpRequest) {
        let out = &mut self.write_buffer;
        let (origin, credentials) = match &self.proxied {
            Some(proxied) => (proxied.origin.as_bytes(), &proxied.credentials[..]),
            None => (&[][..], &[][..]),
        };
        for piece in [
            request.method.as_str().as_bytes(),
            b" ",
            origin,
            request.target.path_and_query(),
            b" HTTP/1.1\r\nhost: ",
            request.target.host(),
            b"\r\n",
            credentials,
            request.headers.as_bytes(),
        ] {
            out.extend_from_slice(piece);
        }
        if head::sends_content_length(&request.method, &request.body) {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(request.body.len()).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Writes what is left of the request, and reads meanwhile: a server may answer before it has seen everything.
    fn poll_exchange(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &mut ExchangeProgress,
        apart: &[u8],
    ) -> Poll<Result<ResponseHead, ExchangeError>> {
        // A connection that the server closed meanwhile, or sent an unsolicited response on, is detected before anything is
        // written.
        if exchange.sent == 0 && exchange.connection_use == ConnectionUse::Reused {
            let is_silent = self.poll_read_available(cx).is_pending() && self.read_buffer.is_empty();
            if !is_silent {
                return Poll::Ready(Err(ExchangeError::Broken(io::ErrorKind::UnexpectedEof.into())));
            }
            // The read was pending, so that the task is woken once there is something to read.
            if let Poll::Ready(Ok(())) = self.poll_write(cx, exchange, apart) {
                return Poll::Pending;
            }
        }
        let written = self.poll_write(cx, exchange, apart);
        let answered = match exchange.early_head.take() {
            Some(head) => Poll::Ready(Ok(head)),
            None => self.poll_head(cx, exchange),
        };
        match (written, answered) {
            (Poll::Ready(Ok(())), answered) => answered,
            // A server that has begun a stream wants the rest of the request nevertheless; one that has answered does not.
            (Poll::Pending, Poll::Ready(Ok(head)))
                if head.status.is_success() && !matches!(head.framing, BodyFraming::Length(_)) =>
            {
                exchange.early_head = Some(head);
                Poll::Pending
            }
            // What is left of the request would be taken for the next one.
            (_, Poll::Ready(Ok(head))) => Poll::Ready(Ok(ResponseHead { keeps_alive: false, ..head })),
            // A server that reads no more may have sent the reason, and that response is read first.
            (Poll::Ready(Err(_)), Poll::Pending) => Poll::Pending,
            (Poll::Ready(Err(error)), _) => Poll::Ready(Err(ExchangeError::Broken(error))),
            (Poll::Pending, answered) => answered,
        }
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        ExchangeProgress { sent, is_flushed, .. }: &mut ExchangeProgress,
        apart: &[u8],
    ) -> Poll<io::Result<()>> {
        if *is_flushed {
            return Poll::Ready(Ok(()));
        }
        let total = self.write_buffer.len() + apart.len();
        while *sent < total {
            let rest = self.write_buffer.get(*sent..).unwrap_or_default();
            let behind = apart.get(sent.saturating_sub(self.write_buffer.len())..).unwrap_or_default();
            let stream = Pin::new(&mut self.stream);
            let count = match (rest, behind) {
                (rest, []) => ready!(stream.poll_write(cx, rest))?,
                ([], behind) => ready!(stream.poll_write(cx, behind))?,
                (rest, behind) => {
                    ready!(stream.poll_write_vectored(cx, &[IoSlice::new(rest), IoSlice::new(behind)]))?
                }
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *sent += count;
        }
        // Nothing is held back but within TLS, where this is what lets it go.
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        *is_flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &mut ExchangeProgress,
    ) -> Poll<Result<ResponseHead, ExchangeError>> {
        loop {
            match head::take_response_head(self.read_buffer.buffer(), &mut exchange.scanned)
                .map_err(ExchangeError::Malformed)?
            {
                Some(head) if is_interim(head.status) => {
                    exchange.interim += 1;
                    if exchange.interim > MAX_INTERIM_RESPONSES {
                        let problem = "it sent only informational (1xx) responses".to_owned();
                        return Poll::Ready(Err(ExchangeError::Malformed(problem)));
                    }
                }
                Some(head) => return Poll::Ready(Ok(head)),
                None => {
                    if ready!(self.poll_fill(cx, 0)).map_err(ExchangeError::Broken)? == 0 {
                        return Poll::Ready(Err(ExchangeError::Broken(io::ErrorKind::UnexpectedEof.into())));
                    }
                }
            }
        }
    }

    /// Reads what is here by now, as [`poll_fill`](Self::poll_fill) does; that is pending for a
    /// task without cooperative budget, whatever has arrived.
    pub(super) fn poll_read_available(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        pin!(unconstrained(poll_fn(|cx| self.poll_fill(cx, 0)))).poll(cx)
    }

    /// Reads more; zero means that nothing will come any more.
    pub(super) fn poll_fill(&mut self, cx: &mut Context<'_>, expected: u64) -> Poll<io::Result<usize>> {
        self.read_buffer.poll_fill(&mut self.stream, cx, expected)
    }

    /// Gives back the room that a large response needed, since a connection may rest for long.
    pub(super) fn shrink(&mut self) {
        self.read_buffer.shrink();
    }

    /// Returns the bytes that were read and not parsed yet.
    pub(super) fn buffered(&mut self) -> &mut BytesMut {
        self.read_buffer.buffer()
    }

    /// Takes the connection out, with what was read ahead, after a response that has switched protocols.
    pub(super) fn into_stream(self) -> (S, Bytes) {
        (self.stream, self.read_buffer.into_bytes())
    }
}

/// Whether a connection has carried a request before, so that its server may have closed it meanwhile.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ConnectionUse {
    #[default]
    Fresh,
    Reused,
}

/// How far an exchange is.
#[derive(Default)]
struct ExchangeProgress {
    connection_use: ConnectionUse,
    /// The bytes that were written: only zero proves that the server cannot have read anything.
    sent: usize,
    /// Whether nothing of the request is held back any more.
    is_flushed: bool,
    /// The bytes of the head that were looked at in vain.
    scanned: usize,
    /// The responses that were none.
    interim: usize,
    /// The head of a response that came before the request was written.
    early_head: Option<ResponseHead>,
}

/// What is wrong with an exchange.
enum ExchangeError {
    Broken(io::Error),
    Malformed(String),
}

impl ExchangeError {
    fn into_error<E: Error>(self, delivery: RequestDelivery) -> HttpError<E> {
        match self {
            Self::Broken(error) => HttpError::broken(error, delivery),
            Self::Malformed(problem) => HttpError::Malformed(problem),
        }
    }
}

/// Reports whether a response is an interim one, which another follows (RFC 9110, section 15.2).
fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}

impl<S> fmt::Debug for ClientConnection<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConnection").field("read_buffer", &self.read_buffer).finish_non_exhaustive()
    }
}
