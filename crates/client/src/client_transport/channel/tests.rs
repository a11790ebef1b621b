//! When requests are written, poll by poll of the driver.

use std::io;
use std::pin::Pin;
use std::task::Waker;

use bytes::Bytes;
use trunkline_protocol::Method;
use trunkline_testing::WakeCounter;
use trunkline_transport::{MemoryChannel, ReceiveError, memory};

use super::*;
use crate::client_transport::{HeaderMirror, InputRecipient, unsolicited_channel};

/// A channel that counts the writes of its driver.
struct CountingChannel {
    inner: MemoryChannel,
    /// The number of messages of each write.
    writes: Arc<Mutex<Vec<usize>>>,
    /// The number of queued messages.
    queued: usize,
    /// Whether the server reads nothing.
    is_stuck: Arc<AtomicBool>,
    /// The bytes of an incomplete message of the server.
    unread: Arc<AtomicUsize>,
}

impl Channel for CountingChannel {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        self.inner.poll_receive(cx)
    }

    fn send(&mut self, message: &str) {
        self.queued += 1;
        self.inner.send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_stuck.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        if self.queued > 0 {
            self.writes.lock().push(std::mem::take(&mut self.queued));
        }
        self.inner.poll_flush(cx)
    }

    fn queued(&self) -> usize {
        self.inner.queued()
    }

    fn unread_bytes(&self) -> usize {
        self.unread.load(Ordering::SeqCst)
    }
}

/// A driver that is polled only by the test.
struct DriverHarness {
    driver: ChannelDriver<CountingChannel>,
    shared: Arc<ChannelShared>,
    server: MemoryChannel,
    writes: Arc<Mutex<Vec<usize>>>,
    is_stuck: Arc<AtomicBool>,
    unread: Arc<AtomicUsize>,
    memory: MessageBudget,
    waker: Waker,
    wakes: Arc<WakeCounter>,
    last: u64,
}

impl DriverHarness {
    fn new() -> Self {
        Self::with_queue_bytes(1 << 20)
    }

    fn with_queue_bytes(queued_bytes: usize) -> Self {
        let limits = ChannelLimits {
            bounds: MessageLimits::default(),
            in_flight: 64,
            queued_bytes,
            malformed_messages: 0,
            message_memory: MessageBudget::new(1 << 20),
        };
        let (server, inner) = memory(64);
        let (writes, is_stuck) = (Arc::<Mutex<Vec<usize>>>::default(), Arc::<AtomicBool>::default());
        let (unread, memory) = (Arc::<AtomicUsize>::default(), limits.message_memory.clone());
        let channel = CountingChannel {
            inner,
            writes: writes.clone(),
            queued: 0,
            is_stuck: is_stuck.clone(),
            unread: unread.clone(),
        };
        let shared = Arc::new(ChannelShared::new(&limits));
        let driver = ChannelDriver::new(channel, shared.clone(), unsolicited_channel(None).0, limits);
        let (waker, wakes) = WakeCounter::waker();
        let mut harness =
            Self { driver, shared, server, writes, is_stuck, unread, memory, waker, wakes, last: 0 };
        assert_eq!(harness.poll_driver(), (Poll::Pending, vec![], 0), "nobody calls");
        harness
    }

    /// Sends a request, which is then in flight.
    fn send_request(&mut self, method: Method) -> ChannelExchange {
        self.last += 1;
        let (id, method) = (self.last, method.as_str());
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        let outgoing = OutgoingRequest {
            id,
            method: method.into(),
            body,
            mirror: HeaderMirror::Nothing,
            recipient: InputRecipient::None,
            caller_token: None,
        };
        let mut waiting = ChannelExchange::new(self.shared.clone(), outgoing);
        assert!(poll(&mut waiting).is_pending());
        waiting
    }

    fn call(&mut self) -> ChannelExchange {
        self.send_request(Method::ToolsCall)
    }

    fn answer(&mut self, call: &ChannelExchange) {
        self.server.send(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, call.id));
        assert!(self.server.poll_flush(&mut Context::from_waker(Waker::noop())).is_ready());
    }

    /// Polls the driver once; returns the result, the number of messages of each write, and how often the driver
    /// woke itself.
    fn poll_driver(&mut self) -> (Poll<()>, Vec<usize>, usize) {
        let before = self.wakes.count();
        let turn = Pin::new(&mut self.driver).poll(&mut Context::from_waker(&self.waker));
        (turn, std::mem::take(&mut *self.writes.lock()), self.wakes.count() - before)
    }
}

fn poll(waiting: &mut ChannelExchange) -> Poll<Option<ExchangeEvent>> {
    waiting.poll_next(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn connection_is_closed_if_its_incomplete_message_exceeds_the_memory_for_all() {
    let mut harness = DriverHarness::new();
    let mut call = harness.call();
    harness.unread.store(900 << 10, Ordering::SeqCst);
    assert_eq!(harness.poll_driver().0, Poll::Pending);
    assert_eq!(harness.memory.used(), 900 << 10);
    harness.unread.store(2 << 20, Ordering::SeqCst);
    assert_eq!(harness.poll_driver().0, Poll::Ready(()));
    let failure = poll(&mut call);
    let Poll::Ready(Some(ExchangeEvent::Failed(failure))) = failure else { panic!("{failure:?}") };
    let error = Error::from(failure).to_string();
    assert!(error.contains("exceed 1048576 bytes"), "{error}");
    let memory = harness.memory.clone();
    drop(harness);
    assert_eq!(memory.used(), 0);
}

#[test]
fn single_call_is_written_in_the_same_poll() {
    let mut harness = DriverHarness::new();
    for _ in 0..3 {
        let mut call = harness.call();
        assert_eq!(harness.poll_driver(), (Poll::Pending, vec![1], 0));
        harness.answer(&call);
        assert_eq!(harness.poll_driver(), (Poll::Pending, vec![], 0));
        assert!(matches!(poll(&mut call), Poll::Ready(Some(ExchangeEvent::Response(Ok(_))))));
    }
    let _standing = harness.send_request(Method::Listen);
    assert_eq!(harness.poll_driver().1, [1]);
    let _call = harness.call();
    assert_eq!(harness.poll_driver(), (Poll::Pending, vec![1], 0), "beside what only stands");
}

#[test]
fn concurrent_calls_are_batched_into_one_write() {
    let mut harness = DriverHarness::new();
    let mut calls = vec![harness.call(), harness.call()];
    for _ in 0..3 {
        assert_eq!(harness.poll_driver(), (Poll::Pending, vec![], 1), "it gathers, and wants another turn");
        calls.push(harness.call());
        calls.push(harness.call());
        assert_eq!(harness.poll_driver(), (Poll::Pending, vec![calls.len()], 0));
        assert_eq!(harness.poll_driver(), (Poll::Pending, vec![], 0), "nothing is left to be said");
        calls.iter().for_each(|call| harness.answer(call));
        assert_eq!(harness.poll_driver(), (Poll::Pending, vec![], 0));
        assert!(calls.iter_mut().all(|call| poll(call).is_ready()));
        calls = vec![harness.call(), harness.call()];
    }
}

#[test]
fn batched_write_is_delayed_by_at_most_one_poll() {
    let mut harness = DriverHarness::new();
    let mut calls = vec![harness.call()];
    for turn in 0..20 {
        calls.push(harness.call());
        let written = harness.poll_driver().1.len();
        assert_eq!(written, turn % 2, "turn {turn}");
    }
}

#[test]
fn blocked_write_waits_for_the_server_without_further_yielding() {
    let mut harness = DriverHarness::new();
    let _calls = [harness.call(), harness.call()];
    harness.is_stuck.store(true, Ordering::SeqCst);
    assert_eq!(harness.poll_driver().2, 1);
    assert_eq!(harness.poll_driver(), (Poll::Pending, vec![], 0));
    harness.is_stuck.store(false, Ordering::SeqCst);
    assert_eq!(harness.poll_driver(), (Poll::Pending, vec![2], 0), "it has waited already");
}

#[test]
fn commands_left_by_a_full_write_queue_are_sent_in_the_same_poll() {
    let mut harness = DriverHarness::with_queue_bytes(1);
    let _calls = [harness.call(), harness.call(), harness.call()];
    assert_eq!(harness.poll_driver(), (Poll::Pending, vec![1, 1, 1], 0));
}

#[test]
fn requests_queued_before_close_are_written_before_the_end() {
    let mut harness = DriverHarness::new();
    let _calls = [harness.call(), harness.call()];
    harness.shared.close();
    assert_eq!(harness.poll_driver(), (Poll::Pending, vec![], 1));
    assert_eq!(harness.poll_driver(), (Poll::Ready(()), vec![2], 0));
}
