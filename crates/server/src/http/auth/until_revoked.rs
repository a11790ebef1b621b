use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use crate::access_grant::AccessGrant;
use crate::call::BoxFuture;

/// Waits for something until the credential is revoked; `None` then.
///
/// The signal is watched only if there is anything to wait for: most calls are ready at their first poll.
pub(in crate::http) fn until_revoked<'a, F: Future>(
    grant: Option<&'a Arc<AccessGrant>>,
    mut work: Pin<&'a mut F>,
) -> impl Future<Output = Option<F::Output>> {
    let signal = grant.and_then(|grant| grant.revocation.as_ref());
    let mut revoked: Option<BoxFuture<'a, ()>> = None;
    std::future::poll_fn(move |cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        let Some(signal) = signal else { return Poll::Pending };
        revoked.get_or_insert_with(|| Box::pin(signal.revoked())).as_mut().poll(cx).map(|()| None)
    })
}
