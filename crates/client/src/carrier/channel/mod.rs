//! Requests over a channel: one task drives it, and everybody else leaves word with that task.
//!
//! Whoever calls puts a written request into the outbox and waits at a slot of its own. The driver takes the whole outbox
//! in one turn, writes once, reads everything that is there and fills the slots; and where several call, it lets them have
//! their turn before it writes. So thirty calls at one time cost one write and one read together, and no caller ever waits
//! for a lock that is held for long.

mod driver;
mod slot;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, oneshot};
use tokio::task::JoinHandle;
use trunkline_protocol::envelope::Bounds;
use trunkline_protocol::{Id, Request};
use trunkline_transport::Channel;
use trunkline_transport::process::Process;

use self::driver::Driver;
use self::slot::Slot;
use super::{Answerer, Arrived, Aside, Carrier, Exchange, Loss, Outgoing, Posted};
use crate::error::Error;

/// Notifications and answers that wait to be written; beyond it whoever posts one waits.
const MOST_POSTS: usize = 64;

/// The bounds of one channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelLimits {
    /// How messages may be nested and batched.
    pub(crate) bounds: Bounds,
    /// Requests at one time; beyond it they wait.
    pub(crate) in_flight: usize,
    /// Bytes that may wait for the peer to read before requests wait with us instead.
    pub(crate) queued_bytes: usize,
    /// Messages that make no sense before the peer is given up.
    pub(crate) noise: usize,
}

/// Carries requests over one channel.
pub(crate) struct ChannelCarrier {
    shared: Arc<Shared>,
    driver: Mutex<Option<JoinHandle<()>>>,
    /// The program at the other end, if we started it; it ends with the carrier.
    process: Mutex<Option<Process>>,
}

/// What the driver and those who call have in common.
#[derive(Debug)]
pub(super) struct Shared {
    outbox: Mutex<Outbox>,
    driver: AtomicWaker,
    /// Whether nobody is left who could call.
    closed: AtomicBool,
    places: Semaphore,
    posts: Arc<Semaphore>,
    /// Requests that were given up and within which the server may still ask something.
    abandoned: AtomicUsize,
}

#[derive(Debug, Default)]
struct Outbox {
    commands: Vec<Command>,
    /// Set once the driver is over: nothing that is put in will ever be taken out.
    gone: Option<Loss>,
}

/// What the driver is told.
#[derive(Debug)]
enum Command {
    Request {
        id: u64,
        body: String,
        slot: Arc<Slot>,
        answerer: Answerer,
        is_cancellable: bool,
        stands: bool,
    },
    Post {
        body: String,
        answers: Option<Id>,
        sent: oneshot::Sender<()>,
        _place: OwnedSemaphorePermit,
    },
    /// Nobody waits for a request any more.
    Abandon(u64, Answerer),
    /// Nobody answers a question; whether it belonged to whom it was given is certain, or not.
    GiveBack(Request, bool),
}

impl ChannelCarrier {
    /// Begins to drive a channel, on a task of its own that ends with the carrier or with the channel.
    pub(crate) fn new(channel: impl Channel, aside: Aside, limits: ChannelLimits) -> Self {
        let shared = Arc::new(Shared::new(&limits));
        let driver = tokio::spawn(Driver::new(channel, shared.clone(), aside, limits));
        Self { shared, driver: Mutex::new(Some(driver)), process: Mutex::default() }
    }

    /// Takes the program at the other end into keeping.
    pub(crate) fn with_process(mut self, process: Process) -> Self {
        self.process = Mutex::new(Some(process));
        self
    }
}

impl Carrier for ChannelCarrier {
    fn request(&self, outgoing: Outgoing) -> Exchange {
        Exchange::over_channel(Waiting::new(self.shared.clone(), outgoing))
    }

    fn post(&self, posted: Posted) -> BoxFuture<'static, Result<(), Loss>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            let gone = || Loss::not_reached("the connection is closed");
            let place = shared.posts.clone().acquire_owned().await.map_err(|_| gone())?;
            let (sent, written) = oneshot::channel();
            let Posted { body, answers, .. } = posted;
            shared.tell(Command::Post { body, answers, sent, _place: place })?;
            written.await.map_err(|_| gone())
        })
    }

    fn epitaph(&self) -> Option<String> {
        let gone = self.shared.lock().gone.clone();
        gone.map(|loss| Error::from(loss).to_string())
    }

    fn is_over(&self) -> bool {
        self.shared.lock().gone.is_some()
    }

    fn abandoned(&self) -> usize {
        self.shared.abandoned.load(Ordering::Acquire)
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.shared.close();
        let driver = self.driver.lock().take();
        let process = self.process.lock().take();
        Box::pin(async move {
            if let Some(driver) = driver {
                // It ends by itself; that it was aborted at the end of the runtime is an end too.
                let _ = driver.await;
            }
            if let Some(process) = process {
                let exit = process.end().await;
                tracing::debug!(%exit, "the server was ended");
            }
        })
    }
}

impl Drop for ChannelCarrier {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl fmt::Debug for ChannelCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelCarrier").finish_non_exhaustive()
    }
}

impl Shared {
    fn new(limits: &ChannelLimits) -> Self {
        Self {
            outbox: Mutex::default(),
            driver: AtomicWaker::new(),
            closed: AtomicBool::new(false),
            places: Semaphore::new(limits.in_flight.clamp(1, Semaphore::MAX_PERMITS)),
            posts: Arc::new(Semaphore::new(MOST_POSTS)),
            abandoned: AtomicUsize::new(0),
        }
    }

    /// Counts a request that was given up, if something may still be asked within it.
    fn count_abandoned(&self, answerer: Answerer) {
        self.abandoned.fetch_add(usize::from(answerer.answers()), Ordering::AcqRel);
    }

    fn has_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire) > 0
    }

    /// Counts it off again, since nothing can be asked within it any more.
    fn settle_abandoned(&self, answerer: Answerer) {
        self.abandoned.fetch_sub(usize::from(answerer.answers()), Ordering::AcqRel);
    }

    /// Tells the driver something, unless it is gone.
    fn tell(&self, command: Command) -> Result<(), Loss> {
        let mut outbox = self.lock();
        if let Some(loss) = &outbox.gone {
            return Err(loss.clone());
        }
        outbox.commands.push(command);
        // The driver is woken for the first only: it takes everything that is there.
        let is_first = outbox.commands.len() == 1;
        drop(outbox);
        if is_first {
            self.driver.wake();
        }
        Ok(())
    }

    /// Takes back a question that nobody answers.
    pub(super) fn give_back(&self, question: Request, certain: bool) {
        // A driver that is gone has nobody to answer.
        let _ = self.tell(Command::GiveBack(question, certain));
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.driver.wake();
    }

    fn lock(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock()
    }
}

/// A request over a channel, from before it is sent until its response is here.
#[derive(Debug)]
pub(super) struct Waiting {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    id: u64,
    answerer: Answerer,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Written, and nobody knows of it.
    Written(Written),
    /// Waiting for one of those in flight to end.
    Queued(Written, Place),
    /// With the driver.
    InFlight,
    Over,
}

/// What a channel has to know of a request.
#[derive(Debug)]
struct Written {
    body: String,
    is_cancellable: bool,
    stands: bool,
}

struct Place(BoxFuture<'static, bool>);

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
    }
}

impl Waiting {
    fn new(shared: Arc<Shared>, outgoing: Outgoing) -> Self {
        let (id, answerer) = (outgoing.id, outgoing.answerer);
        let written = Written {
            is_cancellable: outgoing.is_cancellable(),
            stands: outgoing.stands(),
            body: outgoing.body,
        };
        Self { shared, slot: Arc::default(), id, answerer, stage: Stage::Written(written) }
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arrived>> {
        loop {
            // Where a request is nearly all of the time, and need not be taken out of.
            if let Stage::InFlight = self.stage {
                let arrived = ready!(self.slot.poll_next(cx));
                if matches!(arrived, Arrived::Response(_) | Arrived::Lost(_)) {
                    self.stage = Stage::Over;
                }
                return Poll::Ready(Some(arrived));
            }
            match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Written(written) => {
                    // The driver gives the place back when the request is over.
                    let has_place = self.shared.places.try_acquire().map(SemaphorePermit::forget).is_ok();
                    if !has_place {
                        self.stage = Stage::Queued(written, Place::wait(self.shared.clone()));
                    } else if let Err(loss) = self.send(written) {
                        return Poll::Ready(Some(Arrived::Lost(loss)));
                    }
                }
                Stage::Queued(written, mut place) => {
                    let Poll::Ready(given) = place.0.as_mut().poll(cx) else {
                        self.stage = Stage::Queued(written, place);
                        return Poll::Pending;
                    };
                    if !given {
                        return Poll::Ready(Some(Arrived::Lost(self.shared.loss())));
                    }
                    if let Err(loss) = self.send(written) {
                        return Poll::Ready(Some(Arrived::Lost(loss)));
                    }
                }
                Stage::InFlight | Stage::Over => return Poll::Ready(None),
            }
        }
    }

    fn send(&mut self, written: Written) -> Result<(), Loss> {
        let Written { body, is_cancellable, stands } = written;
        let (id, slot, answerer) = (self.id, self.slot.clone(), self.answerer);
        self.shared.tell(Command::Request { id, body, slot, answerer, is_cancellable, stands })?;
        self.stage = Stage::InFlight;
        Ok(())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if matches!(self.stage, Stage::InFlight) {
            // Counted here and not by the driver: a caller that gave its request up may look at once.
            self.shared.count_abandoned(self.answerer);
            // A driver that is gone has nobody to tell.
            let _ = self.shared.tell(Command::Abandon(self.id, self.answerer));
        }
    }
}

impl Place {
    /// Waits for a place; false once the driver is over.
    fn wait(shared: Arc<Shared>) -> Self {
        Self(Box::pin(async move {
            match shared.places.acquire().await {
                Ok(place) => {
                    place.forget();
                    true
                }
                Err(_) => false,
            }
        }))
    }
}

impl Shared {
    fn loss(&self) -> Loss {
        self.lock().gone.clone().unwrap_or_else(|| Loss::not_reached("the connection is closed"))
    }
}
