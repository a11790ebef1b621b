use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use trunkline_transport::http1::Framing;

use super::wire::Wire;

/// The body of a request that came over a connection of [`serve`](crate::http::serve).
///
/// It is read as it arrives, and only by whoever polls it. As soon as the request is answered, what was not read is gone.
pub struct RequestBody(Kind);

enum Kind {
    /// All of it was there with its head, as most bodies are.
    Whole(Bytes),
    /// It is still coming.
    Coming(Loan),
}

impl RequestBody {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole(bytes))
    }

    pub(super) fn coming(loan: Loan) -> Self {
        Self(Kind::Coming(loan))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut self.0 {
            Kind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Coming(loan) => loan.poll_piece(cx).map_ok(Frame::data),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.size_hint().exact() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Coming(loan) => loan.size_hint(),
        }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Whole(_) => "RequestBody(whole)",
            Kind::Coming(_) => "RequestBody(coming)",
        })
    }
}

/// A connection that is lent to the body of a request, so that whoever reads the body reads the connection.
#[derive(Clone)]
pub(super) struct Loan(Arc<Mutex<Lent>>);

enum Lent {
    Wire {
        wire: Box<Wire>,
        /// Whoever waits for more of the body.
        reader: Option<Waker>,
    },
    /// It was taken back after the end of the body.
    Over,
    /// It was taken back before.
    Revoked,
}

impl Loan {
    fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match &mut *self.lock() {
            Lent::Wire { wire, reader } => {
                let piece = wire.poll_body(cx);
                *reader = piece.is_pending().then(|| cx.waker().clone());
                piece
            }
            Lent::Over => Poll::Ready(None),
            Lent::Revoked => Poll::Ready(Some(Err(io::ErrorKind::NotConnected.into()))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &*self.lock() {
            Lent::Wire { wire, .. } if wire.body().is_over() => SizeHint::with_exact(0),
            Lent::Wire { wire, .. } => match wire.body() {
                Framing::Length(left) => SizeHint::with_exact(*left),
                Framing::Chunked(_) | Framing::UntilClose => SizeHint::default(),
            },
            Lent::Over => SizeHint::with_exact(0),
            Lent::Revoked => SizeHint::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Lent> {
        self.0.lock()
    }
}

/// Who has lent a connection. It is taken back at the latest when this is dropped, or whoever keeps the body would keep it.
pub(super) struct Lender(Loan);

impl Lender {
    pub(super) fn new(wire: Box<Wire>) -> Self {
        Self(Loan(Arc::new(Mutex::new(Lent::Wire { wire, reader: None }))))
    }

    pub(super) fn loan(&self) -> Loan {
        self.0.clone()
    }

    /// Takes the connection back, whatever is left of the body.
    pub(super) fn revoke(&self) -> Option<Box<Wire>> {
        self.take_back(|_| true)
    }

    /// Takes the connection back if the body is over.
    pub(super) fn end(&self) -> Option<Box<Wire>> {
        self.take_back(|wire| wire.body().is_over())
    }

    fn take_back(&self, is_time: impl Fn(&Wire) -> bool) -> Option<Box<Wire>> {
        let mut lent = self.0.lock();
        let left = match &*lent {
            Lent::Wire { wire, .. } if !is_time(wire) => return None,
            Lent::Wire { wire, .. } if wire.body().is_over() => Lent::Over,
            Lent::Wire { .. } => Lent::Revoked,
            Lent::Over | Lent::Revoked => return None,
        };
        let Lent::Wire { wire, reader } = std::mem::replace(&mut *lent, left) else { return None };
        drop(lent);
        // It waits for something that will not come.
        if let Some(reader) = reader {
            reader.wake();
        }
        Some(wire)
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        self.revoke();
    }
}
