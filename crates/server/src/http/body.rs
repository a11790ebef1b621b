use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use trunkline_protocol::Refusal;

use crate::metrics::process::Present;

/// The body of a response: nothing, one buffer that is written at once, or a stream of events.
pub struct ResponseBody(Kind);

enum Kind {
    Empty,
    Whole(Bytes),
    Stream(
        Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>,
        #[expect(dead_code, reason = "it counts")] Present,
    ),
}

impl ResponseBody {
    /// Makes a body of nothing.
    pub const fn empty() -> Self {
        Self(Kind::Empty)
    }

    /// Makes a body of one buffer.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(Kind::Whole(bytes.into()))
    }

    pub(super) fn stream(
        body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
        present: Present,
    ) -> Self {
        Self(Kind::Stream(Box::pin(body), present))
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Empty => "ResponseBody(empty)",
            Kind::Whole(_) => "ResponseBody(whole)",
            Kind::Stream(..) => "ResponseBody(stream)",
        })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Kind::Stream(body, _) => body.as_mut().poll_frame(cx),
            whole => match std::mem::replace(whole, Kind::Empty) {
                Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                _ => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Stream(..) => SizeHint::default(),
        }
    }
}

/// Reads a whole request body.
///
/// # Errors
/// [`Refusal::TOO_LARGE`] before more than `most` bytes are held, [`Refusal::TOO_SLOW`] after `within`, and
/// [`Refusal::INVALID_REQUEST`] if the connection breaks.
pub(super) async fn read<B>(body: B, most: usize, within: Duration) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes>,
{
    let too_large = || Refusal::TOO_LARGE.because(format!("a message may have at most {most} bytes"));
    let announced = body.size_hint().lower();
    if announced > most as u64 {
        return Err(too_large());
    }
    let mut body = std::pin::pin!(body);
    let mut first: Option<Bytes> = None;
    let mut gathered = BytesMut::new();
    // Most bodies are here with their head, so that the clock is started only for those that are not.
    let mut deadline: Option<Pin<Box<tokio::time::Sleep>>> = None;
    std::future::poll_fn(|cx| {
        loop {
            let frame = match body.as_mut().poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    let deadline = deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
                    return deadline.as_mut().poll(cx).map(|()| Err(Refusal::TOO_SLOW));
                }
            };
            let Some(frame) = frame else { return Poll::Ready(Ok(())) };
            let Ok(frame) = frame else {
                return Poll::Ready(Err(Refusal::INVALID_REQUEST.because("the request body broke off")));
            };
            let Ok(data) = frame.into_data() else { continue };
            if first.as_ref().map_or(0, Bytes::len) + gathered.len() + data.len() > most {
                return Poll::Ready(Err(too_large()));
            }
            match &first {
                None => first = Some(data),
                Some(head) => {
                    if gathered.is_empty() {
                        // The announced length is within bounds here; one allocation then takes the whole body.
                        let announced = usize::try_from(announced).unwrap_or(most).min(most);
                        gathered.reserve(announced.max(head.len() + data.len()));
                        gathered.extend_from_slice(head);
                        first = Some(Bytes::new());
                    }
                    gathered.extend_from_slice(&data);
                }
            }
        }
    })
    .await?;
    Ok(if gathered.is_empty() { first.unwrap_or_default() } else { gathered.freeze() })
}
