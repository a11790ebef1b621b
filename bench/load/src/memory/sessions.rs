//! Idle legacy sessions: their size, and that they end without the client's help.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::servers::{Binaries, HttpServer, Kind, Launch};
use crate::wire::Client;

use super::settled;

/// Few connections open all sessions, so that what a connection holds does not count.
pub(super) const CONNECTIONS: usize = 64;

/// How long after their time sessions may still be found, since a server looks for them now and then.
const EXPIRY_SLACK: Duration = Duration::from_secs(5);

/// Sessions that are used to check that they are alive.
const PROBES: usize = 8;

/// How many sessions, and how long they live.
#[derive(Clone, Copy)]
pub(super) struct SessionPlan {
    pub(super) count: usize,
    pub(super) ttl: Duration,
}

/// Resident bytes of the server at each stage.
pub(super) struct SessionFigures {
    pub(super) empty: u64,
    pub(super) first: u64,
    pub(super) expired: u64,
    pub(super) second: u64,
}

/// Opens a batch of sessions, waits until they have expired, and opens a second batch.
///
/// # Errors
/// A session is refused, is gone too early, or is still there after its time.
pub(super) fn measure(binaries: &Binaries, kind: Kind, plan: SessionPlan) -> Result<SessionFigures> {
    let launch = Launch {
        max_sessions: Some(plan.count + 2 * CONNECTIONS),
        session_ttl_seconds: Some(plan.ttl.as_secs()),
        ..Launch::default()
    };
    let server = HttpServer::start(binaries, kind, &launch)?;
    let mut clients = connect(&server)?;
    // The first session on each connection brings the connections' own buffers into the empty figure.
    open_sessions(&mut clients, CONNECTIONS)?;
    let empty = settled(server.id())?;

    let started = Instant::now();
    let sessions = open_sessions(&mut clients, plan.count)?;
    let took = started.elapsed();
    ensure!(
        took < plan.ttl / 2,
        "opening {} sessions took {took:?}; the first ones may have expired",
        plan.count
    );
    let first = settled(server.id())?;
    // Using a session keeps it alive, so others are used after the wait.
    let (early, late) = sessions.split_at(sessions.len() / 2);
    probe(&mut clients, early, 200).context("before expiry")?;

    // Servers may close connections that idle for that long.
    drop(clients);
    thread::sleep(plan.ttl + EXPIRY_SLACK);
    let mut clients = connect(&server)?;
    let expired = settled(server.id())?;
    probe(&mut clients, late, 404).context("after expiry")?;

    open_sessions(&mut clients, plan.count).context("the second batch")?;
    let second = settled(server.id())?;
    Ok(SessionFigures { empty, first, expired, second })
}

/// Opens many sessions; the connections take part at once, so the server is never waited for one by one.
pub(crate) fn open_sessions(clients: &mut [Client], count: usize) -> Result<Vec<String>> {
    let mut sessions = Vec::with_capacity(count);
    while sessions.len() < count {
        let group = clients.len().min(count - sessions.len());
        let group = clients.get_mut(..group).context("no connection is left")?;
        for client in group.iter_mut() {
            client.send_initialize()?;
        }
        let opened = group.iter_mut().map(Client::receive_session).collect::<Result<Vec<_>>>()?;
        for (client, session) in group.iter_mut().zip(&opened) {
            client.send_initialized(session)?;
        }
        for client in group.iter_mut() {
            client.receive_accepted()?;
        }
        sessions.extend(opened);
    }
    Ok(sessions)
}

pub(crate) fn connect(server: &HttpServer) -> Result<Vec<Client>> {
    (0..CONNECTIONS).map(|_| Client::connect(server.address())).collect()
}

fn probe(clients: &mut [Client], sessions: &[String], expected: u16) -> Result<()> {
    let step = (sessions.len() / PROBES).max(1);
    for (client, session) in clients.iter_mut().zip(sessions.iter().step_by(step)).take(PROBES) {
        let status = client.probe_session(session)?;
        ensure!(status == expected, "a session answered with status {status}, not with {expected}");
    }
    Ok(())
}
