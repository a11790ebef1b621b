//! States that handlers drop: no caller waits for their removal, but the next operation does.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use trunkline_protocol::RawJson;
use trunkline_session::{StateHandle, StateKeys, StateLifetime, StateRecord, StateStore as _};
use trunkline_store_redis::RedisStoreLimits;

use crate::fixture::{NOW, ann, open};
use crate::server::RedisProcess;

/// Passes replies on once enough calls of scripts have been sent.
struct HoldingProxy {
    port: u16,
    /// The number of calls that were sent.
    sent: Arc<AtomicUsize>,
    /// The number of calls that have to be sent before any reply is passed on.
    needed: Arc<AtomicUsize>,
}

impl HoldingProxy {
    fn start(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sent, needed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let proxy = Self { port, sent: sent.clone(), needed: needed.clone() };
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { return };
                pass_calls(client.try_clone().unwrap(), server.try_clone().unwrap(), sent.clone());
                pass_replies(client, server, sent.clone(), needed.clone());
            }
        });
        proxy
    }

    fn hold_until_sent(&self, calls: usize) {
        self.needed.store(self.sent.load(Ordering::SeqCst) + calls, Ordering::SeqCst);
    }
}

fn pass_calls(mut client: TcpStream, mut server: TcpStream, sent: Arc<AtomicUsize>) {
    thread::spawn(move || {
        let (mut buffer, mut unread) = ([0; 1 << 16], Vec::new());
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            unread.extend_from_slice(&buffer[..count]);
            let name = b"EVALSHA";
            while let Some(at) = unread.windows(name.len()).position(|window| window == name) {
                unread.drain(..at + name.len());
                sent.fetch_add(1, Ordering::SeqCst);
            }
            if server.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
    });
}

fn pass_replies(
    mut client: TcpStream,
    mut server: TcpStream,
    sent: Arc<AtomicUsize>,
    needed: Arc<AtomicUsize>,
) {
    thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(count @ 1..) = server.read(&mut buffer) {
            while sent.load(Ordering::SeqCst) < needed.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
            if client.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = client.shutdown(Shutdown::Both);
    });
}

#[tokio::test]
async fn removals_of_states_do_not_wait_for_each_other() {
    let server = RedisProcess::start();
    let proxy = HoldingProxy::start(server.port);
    let url = format!("redis://127.0.0.1:{}", proxy.port);
    let store = open(&url, &StateKeys::random().unwrap(), RedisStoreLimits::default()).await;
    let states = store.states();
    let handles: [_; 4] = std::array::from_fn(|_| StateHandle::random());
    for handle in handles {
        let value = RawJson::from_text("value");
        let state = StateRecord { handle, principal: ann(), lifetime: StateLifetime::Idle, value };
        states.create(state, NOW).await.unwrap();
    }
    // So that the script is loaded.
    states.forget(handles[0]);
    assert_eq!(states.get(handles[0], &ann(), NOW).await, Ok(None));

    proxy.hold_until_sent(3);
    handles[1..].iter().for_each(|handle| states.forget(*handle));
    assert_eq!(states.get(handles[1], &ann(), NOW).await, Ok(None));
    assert_eq!(states.count(), 0);
}
