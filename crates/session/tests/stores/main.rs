//! The stores in memory, held to the contract, to simple models and to many threads at once.

mod events_model;
mod memory;
mod sessions_model;
mod states;
mod stress;

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use trunkline_protocol::{RawJson, Revision};
use trunkline_session::{Principal, SessionId, SessionRecord, StoreError, Timestamp};

/// Returns the result of a store in memory; its futures are ready at once.
#[track_caller]
fn now_ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("a store in memory never waits"),
    }
}

/// Returns the answer of a store in memory to a question that it cannot refuse.
#[track_caller]
fn answer<T>(future: impl Future<Output = Result<T, StoreError>>) -> T {
    now_ready(future).expect("the store has no reason to refuse")
}

fn record(principal: &Principal, created: Timestamp) -> SessionRecord {
    SessionRecord {
        id: SessionId::random(),
        principal: principal.clone(),
        revision: Revision::NEWEST_LEGACY,
        capabilities: RawJson::EMPTY_OBJECT,
        client: None,
        log_level: None,
        subscriptions: BTreeSet::new(),
        created,
    }
}
