use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::channel::{Channel, ReceiveError};

/// Creates a channel with a scripted peer, for tests without sockets, and the handle that scripts the peer.
///
/// ```
/// use trunkline_transport::{Channel, mock};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let (mock, mut channel) = mock();
/// mock.respond_with(|sent| sent.contains("ping").then(|| sent.replace("ping", "pong")));
///
/// // The code under test would do this.
/// channel.send(r#"{"method":"ping"}"#);
/// std::future::poll_fn(|cx| channel.poll_flush(cx)).await.unwrap();
/// let answer = std::future::poll_fn(|cx| channel.poll_receive(cx)).await.unwrap().unwrap();
/// assert_eq!(answer, r#"{"method":"pong"}"#);
/// assert_eq!(mock.sent(), [r#"{"method":"ping"}"#]);
///
/// mock.fail_next_send(std::io::ErrorKind::ConnectionReset.into());
/// channel.send("{}");
/// assert!(std::future::poll_fn(|cx| channel.poll_flush(cx)).await.is_err());
///
/// drop(channel);
/// assert!(mock.is_closed());
/// # });
/// ```
pub fn mock() -> (MockPeer, MockChannel) {
    let state = Arc::<Mutex<MockState>>::default();
    (MockPeer { state: state.clone() }, MockChannel { state, queued: VecDeque::new() })
}

/// The scripted peer of a [`MockChannel`]; clones share it.
#[derive(Clone, Debug)]
pub struct MockPeer {
    state: Arc<Mutex<MockState>>,
}

/// A channel with a scripted peer.
#[derive(Debug)]
pub struct MockChannel {
    state: Arc<Mutex<MockState>>,
    queued: VecDeque<String>,
}

type MockResponder = Box<dyn FnMut(&str) -> Option<String> + Send>;

#[derive(Default)]
struct MockState {
    incoming: VecDeque<Result<Bytes, ReceiveError>>,
    /// The peer sends nothing after the queued messages.
    ended: bool,
    /// The peer is disconnected, or the channel was dropped.
    closed: bool,
    sent: Vec<String>,
    failure: Option<io::Error>,
    responder: Option<MockResponder>,
    reader: Option<Waker>,
    watchers: Vec<Waker>,
}

impl fmt::Debug for MockState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { incoming, ended, closed, sent, failure, .. } = self;
        f.debug_struct("MockState")
            .field("incoming", incoming)
            .field("ended", ended)
            .field("closed", closed)
            .field("sent", sent)
            .field("failure", failure)
            .finish_non_exhaustive()
    }
}

impl MockPeer {
    /// Queues a message of the peer.
    pub fn receive(&self, message: impl Into<Bytes>) {
        self.update(|state| state.incoming.push_back(Ok(message.into())));
    }

    /// Queues a receive error.
    pub fn fail_receive(&self, error: ReceiveError) {
        self.update(|state| state.incoming.push_back(Err(error)));
    }

    /// Responds to every message sent from now on for which the function returns a response.
    pub fn respond_with(&self, answer: impl FnMut(&str) -> Option<String> + Send + 'static) {
        self.update(|state| state.responder = Some(Box::new(answer)));
    }

    /// Fails the next flush of a queued message; the message is lost.
    pub fn fail_next_send(&self, error: io::Error) {
        self.update(|state| state.failure = Some(error));
    }

    /// Ends the peer's messages; those queued before are still received, and the peer still reads.
    pub fn end(&self) {
        self.update(|state| state.ended = true);
    }

    /// Disconnects the peer: nothing more is received, and every send fails.
    pub fn close(&self) {
        self.update(|state| {
            state.closed = true;
            state.incoming.clear();
        });
    }

    /// Reports whether the channel is closed: its driver dropped it, or [`MockPeer::close`] was called.
    pub fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Returns the sent messages, in order.
    pub fn sent(&self) -> Vec<String> {
        lock(&self.state).sent.clone()
    }

    /// Clears the sent messages.
    pub fn clear_sent(&self) {
        lock(&self.state).sent.clear();
    }

    /// Waits until a sent message satisfies a condition, and returns it.
    ///
    /// `None` if the channel is closed before. Cancel safe.
    pub async fn wait_for(&self, mut wanted: impl FnMut(&str) -> bool) -> Option<String> {
        std::future::poll_fn(|cx| {
            let mut state = lock(&self.state);
            let (closed, sent) = (state.closed, state.sent.clone());
            // The waker is registered before the check. The check runs without the lock, since the condition is code
            // of the test, which may use the mock.
            state.watchers.retain(|watcher| !watcher.will_wake(cx.waker()));
            state.watchers.push(cx.waker().clone());
            drop(state);
            match sent.into_iter().find(|message| wanted(message)) {
                None if !closed => Poll::Pending,
                found => Poll::Ready(found),
            }
        })
        .await
    }

    fn update(&self, change: impl FnOnce(&mut MockState)) {
        let mut state = lock(&self.state);
        change(&mut state);
        wake(state);
    }
}

impl Channel for MockChannel {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        let mut state = lock(&self.state);
        match state.incoming.pop_front() {
            Some(message) => Poll::Ready(Some(message)),
            None if state.ended || state.closed => Poll::Ready(None),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn send(&mut self, message: &str) {
        self.queued.push_back(message.to_owned());
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.queued.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut state = lock(&self.state);
        let failure =
            if state.closed { Some(io::ErrorKind::BrokenPipe.into()) } else { state.failure.take() };
        if let Some(failure) = failure {
            self.queued.clear();
            return Poll::Ready(Err(failure));
        }
        for message in self.queued.drain(..) {
            // The responder is code of the test, which may use the mock, so it runs without the lock.
            if let Some(mut answer) = state.responder.take() {
                drop(state);
                let answered = answer(&message);
                state = lock(&self.state);
                state.incoming.extend(answered.map(|answer| Ok(answer.into())));
                state.responder.get_or_insert(answer);
            }
            state.sent.push(message);
        }
        wake(state);
        Poll::Ready(Ok(()))
    }

    fn queued(&self) -> usize {
        self.queued.iter().map(String::len).sum()
    }
}

impl Drop for MockChannel {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.closed = true;
        wake(state);
    }
}

fn lock(state: &Mutex<MockState>) -> MutexGuard<'_, MockState> {
    state.lock()
}

/// Releases the lock, and wakes the reader and all watchers.
fn wake(mut state: MutexGuard<'_, MockState>) {
    let wakers: Vec<Waker> = state.reader.take().into_iter().chain(state.watchers.drain(..)).collect();
    drop(state);
    wakers.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::envelope::OversizedMessage;

    use super::*;

    async fn receive(channel: &mut MockChannel) -> Option<Result<Bytes, ReceiveError>> {
        std::future::poll_fn(|cx| channel.poll_receive(cx)).await
    }

    async fn say(channel: &mut MockChannel, message: &str) -> io::Result<()> {
        channel.send(message);
        std::future::poll_fn(|cx| channel.poll_flush(cx)).await
    }

    #[tokio::test]
    async fn mock_yields_messages_and_errors_in_order_and_then_ends() {
        let (mock, mut channel) = mock();
        mock.receive("one");
        mock.fail_receive(ReceiveError::TooLong { limit: 3, message: OversizedMessage::Unknown });
        mock.receive("two");
        mock.end();
        assert_eq!(receive(&mut channel).await.unwrap().unwrap(), "one");
        assert!(matches!(receive(&mut channel).await, Some(Err(ReceiveError::TooLong { limit: 3, .. }))));
        assert_eq!(receive(&mut channel).await.unwrap().unwrap(), "two");
        assert!(receive(&mut channel).await.is_none());
        assert!(say(&mut channel, "the peer still reads").await.is_ok());
    }

    #[tokio::test]
    async fn mock_callbacks_may_use_the_mock() {
        let (mock, mut channel) = mock();
        let script = mock.clone();
        mock.respond_with(move |sent| {
            script.receive(format!("{} messages before {sent}", script.sent().len()));
            (sent == "two").then(|| "an answer to two".to_owned())
        });
        for message in ["one", "two"] {
            say(&mut channel, message).await.unwrap();
        }
        let found = mock.wait_for(|message| mock.sent().len() == 2 && message == "two").await;
        assert_eq!(found.as_deref(), Some("two"));
        for expected in ["0 messages before one", "1 messages before two", "an answer to two"] {
            assert_eq!(receive(&mut channel).await.unwrap().unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn mock_fails_one_send_and_records_the_others() {
        let (mock, mut channel) = mock();
        mock.fail_next_send(io::ErrorKind::ConnectionReset.into());
        assert_eq!(say(&mut channel, "lost").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        say(&mut channel, "kept").await.unwrap();
        assert_eq!(mock.sent(), ["kept"]);
        mock.clear_sent();
        assert!(mock.sent().is_empty());
    }

    #[tokio::test]
    async fn closed_mock_fails_in_both_directions() {
        let (mock, mut channel) = mock();
        mock.receive("never read");
        assert!(!mock.is_closed());
        mock.close();
        assert!(mock.is_closed());
        assert!(receive(&mut channel).await.is_none());
        assert_eq!(say(&mut channel, "x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn mock_wait_for_wakes_on_a_message_or_on_close() {
        let (mock, mut channel) = mock();
        let (found, sent) = tokio::join!(mock.wait_for(|message| message == "b"), async {
            say(&mut channel, "a").await?;
            tokio::task::yield_now().await;
            say(&mut channel, "b").await
        });
        sent.unwrap();
        assert_eq!(found.as_deref(), Some("b"));
        let (none, ()) = tokio::join!(mock.wait_for(|message| message == "c"), async { drop(channel) });
        assert_eq!(none, None);
    }
}
