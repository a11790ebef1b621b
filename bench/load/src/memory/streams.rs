//! Standalone streams: connections that stay open without messages.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::servers::{Binaries, HttpServer, Kind, Launch};
use crate::wire::Client;

use super::sessions::{CONNECTIONS, connect, open_sessions};
use super::settled;

/// How many streams, and how long they stand before memory is read.
#[derive(Clone, Copy)]
pub(super) struct StreamPlan {
    pub(super) count: usize,
    pub(super) hold: Duration,
}

/// The two ways to keep a stream open.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    LegacyGet,
    ModernListen,
}

impl Stream {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::LegacyGet => "legacy GET",
            Self::ModernListen => "modern subscriptions/listen",
        }
    }
}

/// Gives resident bytes before and after the streams were opened; a legacy stream's session is not part of it.
pub(super) fn measure(
    binaries: &Binaries,
    kind: Kind,
    stream: Stream,
    plan: StreamPlan,
) -> Result<(u64, u64)> {
    let launch = Launch { max_sessions: Some(plan.count + 2 * CONNECTIONS), ..Launch::default() };
    let server = HttpServer::start(binaries, kind, &launch)?;
    let mut clients = connect(&server)?;
    let sessions = match stream {
        Stream::LegacyGet => open_sessions(&mut clients, plan.count)?,
        // A few sessions make the server touch the memory that it needs once.
        Stream::ModernListen => open_sessions(&mut clients, CONNECTIONS)?,
    };
    let before = settled(server.id())?;
    let mut open = Vec::with_capacity(plan.count);
    for index in 0..plan.count {
        let mut client = Client::connect(server.address())?;
        match stream {
            Stream::LegacyGet => {
                client.open_legacy_stream(sessions.get(index).context("a stream without a session")?)?;
            }
            Stream::ModernListen => client.open_modern_stream()?,
        }
        open.push(client);
    }
    thread::sleep(plan.hold);
    let after = settled(server.id())?;
    Ok((before, after))
}
