use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use trunkline_http1::server::MAX_SPARE_CAPACITY;
use trunkline_protocol::Refusal;

use super::auth::GrantBoundBody;
use crate::access_grant::AccessGrant;
use crate::admission::BytePermit;
use crate::metrics::process::GaugeGuard;
use crate::party::ClientParty;
use crate::server_core::ServerCore;

/// The body of a response: empty, one buffer that is written at once, or an event stream.
pub struct McpResponseBody(ResponseBodyKind);

enum ResponseBodyKind {
    Empty,
    Whole(Bytes),
    Stream(Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>, Option<GaugeGuard>),
}

impl McpResponseBody {
    /// Makes an empty body.
    pub const fn empty() -> Self {
        Self(ResponseBodyKind::Empty)
    }

    /// Makes a body of one buffer.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(ResponseBodyKind::Whole(bytes.into()))
    }

    /// Makes a body that is written as its parts come, for a service that adds other paths.
    pub fn streaming(body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static) -> Self {
        Self(ResponseBodyKind::Stream(Box::pin(body), None))
    }

    /// Ends a stream at the end of the credential that opened it; any other body is complete already.
    pub(super) fn bind_to_grant(&mut self, grant: Option<&Arc<AccessGrant>>) {
        if let ResponseBodyKind::Stream(..) = &self.0
            && let Some(end) = AccessGrant::end(grant)
            && let ResponseBodyKind::Stream(body, gauge) =
                std::mem::replace(&mut self.0, ResponseBodyKind::Empty)
        {
            self.0 = ResponseBodyKind::Stream(Box::pin(GrantBoundBody::new(body, end)), gauge);
        }
    }

    pub(super) fn stream(
        body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
        present: GaugeGuard,
    ) -> Self {
        Self(ResponseBodyKind::Stream(Box::pin(body), Some(present)))
    }
}

impl fmt::Debug for McpResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            ResponseBodyKind::Empty => "ResponseBody(empty)",
            ResponseBodyKind::Whole(_) => "ResponseBody(whole)",
            ResponseBodyKind::Stream(..) => "ResponseBody(stream)",
        })
    }
}

impl Body for McpResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            ResponseBodyKind::Stream(body, _) => body.as_mut().poll_frame(cx),
            whole => match std::mem::replace(whole, ResponseBodyKind::Empty) {
                ResponseBodyKind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                _ => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, ResponseBodyKind::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            ResponseBodyKind::Empty => SizeHint::with_exact(0),
            ResponseBodyKind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ResponseBodyKind::Stream(..) => SizeHint::default(),
        }
    }
}

/// Turns a response into a buffer without excess capacity.
pub(super) fn shrink_to_bytes(mut bytes: Vec<u8>) -> Bytes {
    if bytes.capacity() - bytes.len() > MAX_SPARE_CAPACITY {
        bytes.shrink_to_fit();
    }
    bytes.into()
}

/// The most that is allocated for an announced length before the bytes arrive. One allocation is enough for most
/// bodies; a larger buffer grows as they arrive, or the announcement alone could take memory.
const INITIAL_CAPACITY: usize = 256 * 1024;

/// The frames of a body so far. Most bodies are one frame, which is not copied.
struct BodyFrames {
    first: Option<Bytes>,
    gathered: BytesMut,
    announced: u64,
}

impl BodyFrames {
    fn new(announced: u64) -> Self {
        Self { first: None, gathered: BytesMut::new(), announced }
    }

    fn len(&self) -> usize {
        self.first.as_ref().map_or(0, Bytes::len) + self.gathered.len()
    }

    fn push(&mut self, data: Bytes) {
        let Some(head) = &self.first else {
            self.first = Some(data);
            return;
        };
        if self.gathered.is_empty() {
            let announced = usize::try_from(self.announced).unwrap_or(INITIAL_CAPACITY).min(INITIAL_CAPACITY);
            self.gathered.reserve(announced.max(head.len() + data.len()));
            self.gathered.extend_from_slice(head);
            self.first = Some(Bytes::new());
        }
        self.gathered.extend_from_slice(&data);
    }

    fn into_bytes(self) -> Bytes {
        if self.gathered.is_empty() { self.first.unwrap_or_default() } else { self.gathered.freeze() }
    }
}

/// Reads a complete request body; a large one comes with its memory permit.
///
/// # Errors
/// [`Refusal::TOO_LARGE`] before more than the limit is held, [`Refusal::TOO_MANY`] if the memory budget is
/// exhausted, [`Refusal::TOO_SLOW`] after the timeout, and [`Refusal::INVALID_REQUEST`] if the connection breaks.
pub(super) async fn read_body<B>(
    body: B,
    core: &ServerCore,
    party: &ClientParty,
) -> Result<(Bytes, Option<BytePermit>), Refusal>
where
    B: Body<Data = Bytes>,
{
    let (most, within) = (core.limits.message_bytes, core.limits.body_timeout);
    let too_large = || Refusal::TOO_LARGE.with_message(format!("a message may have at most {most} bytes"));
    let announced = body.size_hint().lower();
    if announced > most as u64 {
        return Err(too_large());
    }
    let mut body = std::pin::pin!(body);
    let mut frames = BodyFrames::new(announced);
    let mut reserved = None;
    // Most bodies arrive with their head, so the timer is started only for those that do not.
    let mut deadline: Option<Pin<Box<tokio::time::Sleep>>> = None;
    std::future::poll_fn(|cx| {
        loop {
            let frame = match body.as_mut().poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    let deadline = deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
                    // Not subject to tokio's cooperative budget: a peer that never pauses uses it up, and the timer
                    // would never fire.
                    let late = std::pin::pin!(tokio::task::unconstrained(deadline.as_mut()));
                    return late.poll(cx).map(|()| Err(Refusal::TOO_SLOW));
                }
            };
            let Some(frame) = frame else { return Poll::Ready(Ok(())) };
            let Ok(frame) = frame else {
                return Poll::Ready(Err(Refusal::INVALID_REQUEST.with_message("the request body broke off")));
            };
            let Ok(data) = frame.into_data() else { continue };
            let length = frames.len() + data.len();
            if length > most {
                return Poll::Ready(Err(too_large()));
            }
            core.reserve_memory(party, &mut reserved, length)?;
            frames.push(data);
        }
    })
    .await?;
    let whole = frames.into_bytes();
    if let Some(reserved) = &mut reserved {
        reserved.shrink_to(whole.len());
    }
    Ok((whole, reserved))
}
