use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsAcceptor;
use trunkline_http1::server::{ConnectionTimeouts, ServerConnection, Service};

use super::endpoint::HttpService;
use super::peer::PeerInfo;
use super::socket::{AcceptedStream, ConnectionSocket};
use super::tls::ServerTls;
use crate::limits::ServerLimits;
use crate::party::address_key;
use crate::shutdown::Shutdown;

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainOutcome {
    /// Every call was answered.
    Cleanly,
    /// These many calls were still running when the time was over, and were ended.
    Aborted(usize),
}

/// Serves an endpoint on a listener until the shutdown handle drains it, and then for at most `grace`.
///
/// `service` answers the requests: usually the endpoint itself, or something that adds paths beside it. 4,096 connections may
/// wait to be accepted, whatever the listener was made with.
///
/// # Errors
/// The listener itself fails.
pub async fn serve(
    listener: TcpListener,
    endpoint: &HttpService,
    service: impl Service,
    grace: Duration,
) -> io::Result<DrainOutcome> {
    prime_allocator();
    set_listen_backlog(&listener);
    let core = &endpoint.inner.core;
    let shutdown = core.shutdown.clone();
    let (limits, timeouts) = (core.limits.clone(), connection_timeouts(&core.limits));
    let room = Arc::new(Semaphore::new(limits.connections));
    let crowd = PerAddressLimit::default();
    let tls = endpoint.inner.options.tls.as_ref();
    let mut connections = JoinSet::new();
    connections.spawn(sweep(endpoint.clone()));
    loop {
        let permit = tokio::select! {
            biased;
            () = shutdown.draining() => break,
            Some(_) = connections.join_next() => continue,
            permit = room.clone().acquire_owned() => permit,
        };
        // The semaphore is never closed.
        let Ok(permit) = permit else { break };
        let accepted = tokio::select! {
            biased;
            () = shutdown.draining() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, or a connection that was reset before it was accepted: neither ends the server.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Some(seat) = crowd.acquire(address.ip(), limits.connections_per_address) else { continue };
        let peer = PeerInfo { loopback: address.ip().is_loopback(), tls: tls.is_some() };
        let peer = core.env.reads_headers().then_some(peer);
        let (service, shutdown, limits) = (service.clone(), shutdown.clone(), limits.clone());
        // The certificate may have been replaced since the last connection.
        let (acceptor, unread) = (tls.map(ServerTls::acceptor), core.write_budget.backlog());
        connections.spawn(async move {
            // Answers are written whole, so waiting to gather more only delays them.
            let _ = stream.set_nodelay(true);
            if let Some(stream) = tls_handshake(stream, acceptor, limits.head_timeout, &shutdown).await {
                let admission = ConnectionPermit { _permit: permit, _address_permit: seat };
                let socket = ConnectionSocket::new(stream, limits.write_timeout, unread, admission);
                let connection = ServerConnection::new(service, peer, &timeouts, shutdown)
                    .with_remote_address(address.ip());
                if let Err(error) = connection.serve(socket).await {
                    tracing::debug!(%error, "a connection ended early");
                }
            }
        });
    }
    drop(listener);
    drain(endpoint, &mut connections, grace).await
}

fn connection_timeouts(limits: &ServerLimits) -> ConnectionTimeouts {
    ConnectionTimeouts {
        head: limits.head_timeout,
        idle: limits.idle_timeout,
        response_poll: limits.stream_after,
    }
}

/// Sets the backlog of the listener to 4,096 connections, as far as the system allows; tokio sets 128.
///
/// Many clients that connect at once, such as a hub to its servers, would exceed it, and a connection that does is retried
/// by its system only after a second.
fn set_listen_backlog(listener: &TcpListener) {
    const WAITING: i32 = 4096;
    #[cfg(unix)]
    // It listens already, so this only changes the length of the queue.
    if let Err(error) = rustix::net::listen(listener, WAITING) {
        tracing::debug!(%error, "the queue of connections keeps its length");
    }
    #[cfg(not(unix))]
    let _ = (listener, WAITING);
}

/// Lets the allocator keep what a long message needs for the next one.
///
/// That of glibc gives the end of its memory back to the system as soon as 128 KiB of it are free, and has it given again page
/// by page: a quarter of what a call of 64 KiB costs. It learns from large blocks that are freed how much to keep, so it is
/// shown one; a process that ever read a large message has learned the same. A program that sets the thresholds itself, as the
/// command does, is not affected.
fn prime_allocator() {
    const LARGE: usize = 1 << 20;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
}

/// Sweeps sessions from time to time until the server drains. A store that takes its time keeps nobody else waiting.
async fn sweep(endpoint: HttpService) {
    let mut times = tokio::time::interval(endpoint.inner.sessions.sweep_interval());
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let forever = async {
        loop {
            times.tick().await;
            endpoint.sweep().await;
        }
    };
    tokio::select! {
        biased;
        () = endpoint.inner.core.shutdown.draining() => {}
        () = forever => {}
    }
}

async fn drain(
    endpoint: &HttpService,
    connections: &mut JoinSet<()>,
    grace: Duration,
) -> io::Result<DrainOutcome> {
    let core = &endpoint.inner.core;
    let finished = async {
        core.idle().await;
        while connections.join_next().await.is_some() {}
        endpoint.inner.web_sockets.wait_closed().await;
    };
    let outcome = tokio::select! {
        () = finished => DrainOutcome::Cleanly,
        () = tokio::time::sleep(grace) => DrainOutcome::Aborted(core.calls()),
        () = core.shutdown.stopping() => DrainOutcome::Aborted(core.calls()),
    };
    endpoint.inner.sessions.end_all();
    connections.shutdown().await;
    endpoint.inner.web_sockets.shutdown().await;
    // Connections that merely stayed open have lost nothing.
    Ok(if outcome == DrainOutcome::Aborted(0) { DrainOutcome::Cleanly } else { outcome })
}

/// Performs the TLS handshake, if TLS is configured; `None` if it fails, times out, or the server shuts down meanwhile.
async fn tls_handshake(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    within: Duration,
    shutdown: &Shutdown,
) -> Option<AcceptedStream> {
    let Some(acceptor) = acceptor else { return Some(AcceptedStream::Plain(stream)) };
    let shaken = tokio::select! {
        () = shutdown.draining() => return None,
        shaken = tokio::time::timeout(within, acceptor.accept(stream)) => shaken,
    };
    match shaken {
        Ok(Ok(stream)) => Some(AcceptedStream::Tls(Box::new(stream))),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

/// What a connection takes of the limits until its socket is closed.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    _permit: OwnedSemaphorePermit,
    _address_permit: AddressPermit,
}

/// How many connections each address has.
#[derive(Clone, Debug, Default)]
struct PerAddressLimit {
    counts: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl PerAddressLimit {
    fn acquire(&self, address: IpAddr, most: usize) -> Option<AddressPermit> {
        let address = address_key(address);
        if address.is_loopback() {
            return Some(AddressPermit { limit: None });
        }
        let mut seats = self.counts.lock();
        let taken = seats.entry(address).or_default();
        if *taken >= most {
            return None;
        }
        *taken += 1;
        Some(AddressPermit { limit: Some((self.clone(), address)) })
    }
}

/// One connection of an address.
#[derive(Debug)]
struct AddressPermit {
    limit: Option<(PerAddressLimit, IpAddr)>,
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let Some((crowd, address)) = &self.limit else { return };
        let mut seats = crowd.counts.lock();
        if let Some(taken) = seats.get_mut(address) {
            *taken -= 1;
            if *taken == 0 {
                seats.remove(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_per_address_and_released() {
        let crowd = PerAddressLimit::default();
        let enter = |address: &str| crowd.acquire(address.parse().unwrap(), 2);
        let held = [enter("192.0.2.1"), enter("::ffff:192.0.2.1")];
        assert!(held.iter().all(Option::is_some));
        assert!(enter("192.0.2.1").is_none(), "a third of one address");
        assert!(enter("192.0.2.2").is_some(), "another address");
        let network = [enter("2001:db8::1"), enter("2001:db8::ffff:2")];
        assert!(network.iter().all(Option::is_some));
        assert!(enter("2001:db8::3").is_none(), "a third of one network");
        assert!(enter("2001:db8:0:1::3").is_some(), "another network");
        let local: Vec<_> = (0..9).map(|_| enter("::ffff:127.0.0.1")).chain([enter("::1")]).collect();
        assert!(local.iter().all(Option::is_some), "the loopback is excepted");
        drop((held, network));
        assert!(crowd.counts.lock().is_empty());
    }
}
