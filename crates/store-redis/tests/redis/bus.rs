//! The bus between processes, while Redis fails and processes are killed.

use std::time::{Duration, Instant};

use bytes::Bytes;
use trunkline_session::{
    BusDelivery, BusEvent, BusLimits, ProcessId, SessionBus as _, StateKeys, StoreError,
};
use trunkline_store_redis::{RedisBus, RedisStoreLimits};

use crate::fixture::open;
use crate::server::RedisProcess;

/// How long anything may take that has to happen.
const SETTLE_DEADLINE: Duration = Duration::from_secs(60);

async fn join(server: &RedisProcess, keys: &StateKeys) -> RedisBus {
    let store = open(&server.url(), keys, RedisStoreLimits::default()).await;
    store.join_bus(BusLimits::default()).await.unwrap()
}

/// Sends until Redis has acknowledged it.
async fn send(bus: &RedisBus, to: ProcessId, number: u8) {
    let start = Instant::now();
    loop {
        match bus.send(to, Bytes::from(vec![number])).await {
            Ok(delivery) => return assert_eq!(delivery, BusDelivery::Delivered),
            Err(StoreError::Unavailable(_)) => assert!(start.elapsed() < SETTLE_DEADLINE),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bus_goes_on_after_an_outage_and_loses_no_message() {
    let arguments = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let (mut server, keys) = (RedisProcess::start_with(&arguments), StateKeys::random().unwrap());
    let (sender, receiver) = (join(&server, &keys).await, join(&server, &keys).await);
    let to = receiver.process();
    for number in 0..20 {
        if number % 7 == 5 {
            // What was sent before may not have been read yet.
            server.kill();
            server.restart();
        }
        send(&sender, to, number).await;
    }
    let mut received = Vec::new();
    while received.last() != Some(&19) {
        let event = tokio::time::timeout(SETTLE_DEADLINE, receiver.next()).await;
        match event.unwrap_or_else(|_| panic!("no more after {received:?}")) {
            Some(BusEvent::Message(message)) => received.push(message[0]),
            Some(BusEvent::Gap) => {}
            other => panic!("{other:?}"),
        }
    }
    // One that was not acknowledged may have been delivered too.
    received.dedup();
    assert_eq!(received, (0..20).collect::<Vec<u8>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_process_is_gone_within_seconds() {
    let (server, keys) = (RedisProcess::start(), StateKeys::random().unwrap());
    let (bus, killed) = (join(&server, &keys).await, join(&server, &keys).await);
    let process = killed.process();
    assert_eq!(bus.is_alive(process).await, Ok(true));
    // It ends without leaving.
    drop(killed);
    let start = Instant::now();
    while bus.is_alive(process).await != Ok(false) {
        assert!(start.elapsed() < SETTLE_DEADLINE, "it counts as running for ever");
    }
    assert_eq!(bus.send(process, Bytes::from_static(b"late")).await, Ok(BusDelivery::ProcessGone));
    assert_eq!(bus.is_alive(bus.process()).await, Ok(true));
}
