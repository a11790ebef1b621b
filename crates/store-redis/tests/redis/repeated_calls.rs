//! Connections that break after Redis has run a call and before its reply arrives: the call is repeated, and has one effect.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use trunkline_protocol::RawJson;
use trunkline_session::{
    EventReplay, EventStore as _, ReplaceOutcome, SessionStore as _, StateHandle, StateKeys, StateLifetime,
    StateRecord, StateStore as _,
};
use trunkline_store_redis::RedisStoreLimits;

use crate::fixture::{NOW, ann, event, open, record};
use crate::server::RedisProcess;

/// Passes everything on, but one reply.
struct LossyProxy {
    port: u16,
    /// How many replies are passed on before one is lost; negative if none will be.
    countdown: Arc<AtomicI64>,
}

impl LossyProxy {
    fn start(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let countdown = Arc::new(AtomicI64::new(-1));
        let shared = countdown.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { return };
                pass_on(client, server, &shared);
            }
        });
        Self { port, countdown }
    }

    /// Loses the reply after this many others.
    fn lose_reply(&self, after: i64) {
        self.countdown.store(after, Ordering::SeqCst);
    }

    #[track_caller]
    fn assert_lost(&self) {
        assert_eq!(self.countdown.load(Ordering::SeqCst), -1, "a reply was lost");
    }
}

fn pass_on(client: TcpStream, server: TcpStream, countdown: &Arc<AtomicI64>) {
    let (mut requests, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut requests, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let countdown = countdown.clone();
    thread::spawn(move || {
        let (mut client, mut server) = (client, server);
        let mut buffer = [0; 1 << 16];
        while let Ok(count @ 1..) = server.read(&mut buffer) {
            let is_lost =
                countdown.load(Ordering::SeqCst) >= 0 && countdown.fetch_sub(1, Ordering::SeqCst) == 0;
            if is_lost || client.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn call_that_is_repeated_after_a_lost_reply_has_one_effect() {
    let server = RedisProcess::start();
    let proxy = LossyProxy::start(server.port);
    let url = format!("redis://127.0.0.1:{}", proxy.port);
    let keys = StateKeys::random().unwrap();
    let store = open(&url, &keys, RedisStoreLimits::default()).await;
    let (sessions, events, states) = (store.sessions(), store.events(), store.states());
    let handle = StateHandle::random();
    // Every script is loaded, so that one call has one reply.
    let own = record(&ann(), NOW);
    sessions.create(own.clone(), NOW).await.unwrap();
    events.append(own.id, event(9, 0), NOW).wait().await.unwrap();
    sessions.delete(own.id, &ann()).await.unwrap();
    let value = RawJson::from_text("value");
    let state = |handle| StateRecord {
        handle,
        principal: ann(),
        lifetime: StateLifetime::Idle,
        value: RawJson::from_text("value"),
    };
    let other = StateHandle::random();
    states.create(state(other), NOW).await.unwrap();
    states.replace(other, &ann(), 0, value.clone(), NOW).await.unwrap();

    for lost in 0..2 {
        let own = record(&ann(), NOW);
        proxy.lose_reply(lost);
        assert_eq!(sessions.create(own.clone(), NOW).await, Ok(()), "its own row is no duplicate");
        proxy.assert_lost();
        proxy.lose_reply(0);
        events.append(own.id, event(1, 0), NOW).wait().await.unwrap();
        proxy.assert_lost();
        events.append(own.id, event(1, 1), NOW).wait().await.unwrap();
        let replay = events.replay(own.id, event(1, 0).id, NOW).await;
        assert_eq!(replay, Ok(EventReplay::Events(vec![event(1, 1)])), "an event is stored once");
        proxy.lose_reply(lost);
        assert_eq!(sessions.delete(own.id, &ann()).await, Ok(true), "it was there");
        proxy.assert_lost();
        assert_eq!(sessions.count(), 0);
    }

    proxy.lose_reply(0);
    assert_eq!(states.create(state(handle), NOW).await, Ok(()));
    proxy.assert_lost();
    proxy.lose_reply(0);
    assert_eq!(states.replace(handle, &ann(), 0, value, NOW).await, Ok(ReplaceOutcome::Done));
    proxy.assert_lost();
    let found = states.get(handle, &ann(), NOW).await.unwrap().unwrap();
    assert_eq!(found.version, 1, "a value is replaced once");
    assert_eq!(states.count(), 2);
}
