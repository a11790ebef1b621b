use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_rustls::TlsAcceptor;
use trunkline_http1::server::{ConnectionTimeouts, ServerConnection, Service};

use super::connection_admission::{ConnectionAdmission, ConnectionPermit};
use super::endpoint::HttpService;
use super::peer::PeerInfo;
use super::socket::{AcceptedStream, ConnectionSocket};
use super::tls::ServerTls;
use crate::limits::ServerLimits;
use crate::metrics::process::{self, ConnectionRefusal};
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
    let shutdown = endpoint.inner.core.shutdown.clone();
    let limits = &endpoint.inner.core.limits;
    let admission = ConnectionAdmission::new(limits, !endpoint.inner.options.probe_paths.is_empty());
    let mut connections = JoinSet::new();
    connections.spawn(sweep(endpoint.clone()));
    loop {
        tokio::select! {
            biased;
            () = shutdown.draining() => break,
            Some(_) = connections.join_next() => continue,
            () = admission.ready() => {}
        }
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
        let Some(permit) = admission.admit(address.ip()) else { continue };
        let registration = match &permit {
            ConnectionPermit::Reserved(reserved) => Some(reserved.registration()),
            ConnectionPermit::Ordinary { .. } => None,
        };
        let accepted = AcceptedConnection { stream, address, permit };
        let task = connections.spawn(accepted.serve(endpoint.clone(), service.clone()));
        if let Some(registration) = registration {
            registration.register(task);
        }
    }
    drop(listener);
    drain(endpoint, &mut connections, grace).await
}

/// A connection that was accepted and admitted.
struct AcceptedConnection {
    stream: TcpStream,
    address: SocketAddr,
    permit: ConnectionPermit,
}

impl AcceptedConnection {
    /// Answers its requests with `service`, or one health check if it is a reserved connection.
    fn serve(self, endpoint: HttpService, service: impl Service) -> impl Future<Output = ()> + Send {
        let Self { stream, address, permit } = self;
        let core = &endpoint.inner.core;
        let tls = endpoint.inner.options.tls.as_ref();
        let peer = PeerInfo { loopback: address.ip().is_loopback(), tls: tls.is_some() };
        let peer = core.env.reads_headers().then_some(peer);
        let (shutdown, timeouts) = (core.shutdown.clone(), connection_timeouts(&core.limits));
        // The certificate may have been replaced since the last connection.
        let (acceptor, unread) = (tls.map(ServerTls::acceptor), core.write_budget.backlog());
        async move {
            let limits = &endpoint.inner.core.limits;
            // Answers are written whole, so waiting to gather more only delays them.
            let _ = stream.set_nodelay(true);
            let Some(stream) = tls_handshake(stream, acceptor, limits.head_timeout, &shutdown).await else {
                return;
            };
            let is_reserved = matches!(permit, ConnectionPermit::Reserved(_));
            let socket = ConnectionSocket::new(stream, limits.write_timeout, unread, permit);
            let mut connection =
                ServerConnection::new(service, peer, &timeouts, shutdown).with_remote_address(address.ip());
            if is_reserved {
                let endpoint = endpoint.clone();
                connection = connection.with_single_request(move |path| {
                    let is_probe = endpoint.inner.options.probe_paths.iter().any(|known| known == path);
                    if !is_probe {
                        process::count_refused_connection(ConnectionRefusal::Total);
                    }
                    is_probe
                });
            }
            if let Err(error) = connection.serve(socket).await {
                tracing::debug!(%error, "a connection ended early");
            }
        }
    }
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

/// Sweeps sessions from time to time until the server drains. A slow store delays nothing else.
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
        // The client of a call that began meanwhile may have disconnected.
        core.idle().await;
    };
    let outcome = tokio::select! {
        () = finished => DrainOutcome::Cleanly,
        () = tokio::time::sleep(grace) => DrainOutcome::Aborted(core.calls()),
        () = core.shutdown.stopping() => DrainOutcome::Aborted(core.calls()),
    };
    endpoint.inner.sessions.end_all();
    connections.shutdown().await;
    endpoint.inner.web_sockets.shutdown().await;
    if let Some(bus) = &core.bus {
        // Last, since calls that run to their end answer clients of other processes until then.
        bus.leave().await;
    }
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
