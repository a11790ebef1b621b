//! The campaign's end of the hub: starts it, gives it orders, and looks at what it holds.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::PATIENCE;
use crate::process::{ProcessUsage, RoleProcess, held, orphans};

/// What the hub may hold in memory beyond what it held before, in KiB; an allocator keeps some of what was freed.
const MEMORY_MORE: usize = 16 * 1024;

/// A hub process, and its pipes.
pub(crate) struct HubDriver {
    role: Mutex<RoleProcess>,
    id: u32,
    pub(crate) address: SocketAddr,
    orders: Mutex<ChildStdin>,
    number: AtomicU64,
    waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>>,
}

impl HubDriver {
    pub(crate) fn start() -> Self {
        let address = free_address();
        let mut role = RoleProcess::start(&["hub", &address.to_string()], true);
        let (orders, said) = (role.child().stdin.take().unwrap(), role.child().stdout.take().unwrap());
        let waiting: Arc<Mutex<HashMap<u64, Sender<Value>>>> = Arc::default();
        let told = waiting.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(said).lines() {
                let Ok(line) = line else { return };
                let (number, answer) = line.split_once(' ').unwrap();
                let waiting = told.lock().unwrap().remove(&number.parse().unwrap()).unwrap();
                // The receiver is gone if the campaign has failed.
                let _ = waiting.send(serde_json::from_str(answer).unwrap());
            }
        });
        until_listening(address);
        let id = role.id();
        let (role, orders) = (Mutex::new(role), Mutex::new(orders));
        Self { role, id, address, orders, number: AtomicU64::new(0), waiting }
    }

    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Gives an order and waits until it is done.
    pub(crate) fn order(&self, order: &str) -> Value {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let (done, outcome) = channel();
        self.waiting.lock().unwrap().insert(number, done);
        // One write, so that orders which are given at one time stay apart.
        self.orders.lock().unwrap().write_all(format!("{number} {order}\n").as_bytes()).unwrap();
        outcome.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nothing came of `{order}`"))
    }

    /// Makes these the servers of the hub.
    pub(crate) fn set(&self, servers: &[String]) -> Value {
        self.order(&format!("set {}", servers.join(" ")))
    }

    pub(crate) fn held(&self) -> ProcessUsage {
        let told = self.order("held");
        let tasks = usize::try_from(told["tasks"].as_u64().unwrap()).unwrap();
        held(self.id, tasks)
    }

    /// Waits until the hub holds nothing of what was, and returns what it holds; it must be no more than before.
    pub(crate) fn settled(&self, before: Option<ProcessUsage>) -> ProcessUsage {
        let is_settled = |held: ProcessUsage| {
            let quiet = self.order("held");
            let is_quiet = quiet["connections"] == 0 && quiet["calls"] == 0 && held.zombies == 0;
            // The guard of its children, and nothing else.
            let is_alone = held.children <= 1 && orphans().is_empty();
            let is_less = before.is_none_or(|before| {
                held.tasks <= before.tasks
                    && held.descriptors <= before.descriptors
                    && held.children <= before.children
                    && held.memory <= before.memory + MEMORY_MORE
            });
            is_quiet && is_alone && is_less
        };
        let deadline = Instant::now() + PATIENCE;
        let mut last = self.held();
        // Closed connections take a moment to be released; wait until the count no longer changes.
        loop {
            sleep(Duration::from_millis(100));
            let held = self.held();
            let stands_still = (held.tasks, held.descriptors) == (last.tasks, last.descriptors);
            if stands_still && is_settled(held) {
                return held;
            }
            assert!(
                Instant::now() < deadline,
                "the hub holds {held} and {:?}, before {before:?}",
                self.order("held")
            );
            last = held;
        }
    }

    /// Ends the hub by ending its input; it has to leave nothing.
    pub(crate) fn end(self) {
        drop(self.orders);
        let mut role = self.role.into_inner().unwrap();
        until("the hub ends", || role.child().try_wait().unwrap().is_some());
        until("nothing is left of it", || orphans().is_empty());
    }
}

pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Waits until a process listens at an address.
pub(crate) fn until_listening(address: SocketAddr) {
    // Without a listener, the system may choose the destination as the source port, and the connection reaches itself.
    let reaches_another = |stream: TcpStream| stream.local_addr().is_ok_and(|own| own != address);
    until("somebody listens", || TcpStream::connect(address).is_ok_and(reaches_another));
}

/// Waits for something that must happen.
pub(crate) fn until(what: &str, mut happens: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happens() {
        assert!(Instant::now() < deadline, "it never came to this: {what}");
        sleep(Duration::from_millis(2));
    }
}
