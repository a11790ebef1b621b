//! What is called: the least possible server, our example itself, or a gateway in front of it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::gateway::{Front, Gateway, Upstream};
use crate::drive::{Behind, Plan, Sample, Window, drive_http, drive_stdio};
use crate::servers::{Binaries, HttpServer, Kind, Launch, StdioServer};
use crate::wire::{Call, Client, Era, FIRST_ID, Place, Target};

/// One row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// The limit of an exchange over HTTP.
    Bare,
    /// Our example, called without anything between.
    Direct,
    Through(Gateway),
}

impl Subject {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bare => "limit (bare)",
            Self::Direct => "direct call",
            Self::Through(gateway) => gateway.name(),
        }
    }
}

/// What was measured in one round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// With many in flight.
    pub(super) many: Sample,
    /// The median of the calls that were made one after another, in microseconds.
    pub(super) median: f64,
}

/// A subject that waits for its turn.
pub(super) enum Running {
    Http { id: u32, place: Place, behind: Behind, _held: Box<Held> },
    Stdio(Box<StdioServer>),
}

/// What is to be ended when the measuring is over.
pub(super) enum Held {
    Server(#[expect(dead_code, reason = "it ends when it is dropped")] HttpServer),
    Front(#[expect(dead_code, reason = "it ends when it is dropped")] Front),
}

impl Running {
    pub(super) fn start(
        binaries: &Binaries,
        subject: Subject,
        upstream: Upstream,
        era: Era,
        folder: &Path,
    ) -> Result<Self> {
        let alone = |kind| -> Result<Self> {
            let server = HttpServer::start(binaries, kind, &Launch::default())?;
            let (id, place) = (server.id(), server.address().into());
            Ok(Self::Http { id, place, behind: Behind::Nobody, _held: Box::new(Held::Server(server)) })
        };
        match (subject, upstream) {
            (Subject::Bare, _) => alone(Kind::Bare),
            (Subject::Direct, Upstream::Http) => alone(Kind::Ours),
            (Subject::Direct, Upstream::Stdio) => {
                let mut server = StdioServer::start(binaries, Kind::Ours, &Launch::default())?;
                server.prepare(era)?;
                Ok(Self::Stdio(Box::new(server)))
            }
            (Subject::Through(gateway), upstream) => {
                let program = gateway.locate(binaries.folder())?;
                let front = Front::start(binaries, gateway, &program, upstream, folder)?;
                let (id, place, behind) = (front.id(), front.place(), front.behind());
                Ok(Self::Http { id, place, behind, _held: Box::new(Held::Front(front)) })
            }
        }
    }

    pub(super) fn measure(&mut self, era: Era, text: &str, in_flight: usize, plan: Plan) -> Result<Round> {
        match self {
            Self::Http { id, place, behind, .. } => {
                // First alone: a gateway that has to find its server first does so outside of what is measured.
                let median = median_over_http(*place, era, text, plan).context("one in flight")?;
                let window = Window::in_front(*id, *behind, plan);
                let many = drive_http(*place, era, text, in_flight, window).context("many in flight")?;
                Ok(Round { many, median })
            }
            Self::Stdio(server) => {
                let median = median_over_stdio(server, era, text, plan)?;
                let window = Window::new(server.id(), plan);
                Ok(Round { many: drive_stdio(server, era, text, in_flight, window)?, median })
            }
        }
    }
}

fn median_over_http(place: Place, era: Era, text: &str, plan: Plan) -> Result<f64> {
    let mut client = Client::connect(place)?;
    let session = match era {
        Era::Legacy => Some(client.open_session()?),
        Era::Modern => None,
    };
    let mut call = Call::http(&Target { place, era, session: session.as_deref() }, text)?;
    median(plan, |id| client.call(&mut call, id, text))
}

fn median_over_stdio(server: &mut StdioServer, era: Era, text: &str, plan: Plan) -> Result<f64> {
    server.block()?;
    let mut call = Call::line(era, text)?;
    median(plan, |id| server.call(&mut call, id, text))
}

/// Makes calls one after another, and gives the median of their times in microseconds.
fn median(plan: Plan, mut call: impl FnMut(u32) -> Result<()>) -> Result<f64> {
    let began = Instant::now();
    let mut times: Vec<Duration> = Vec::new();
    let mut id = FIRST_ID;
    while began.elapsed() < plan.warm_up + plan.measured || times.is_empty() {
        id += 1;
        let called = Instant::now();
        call(id)?;
        if began.elapsed() > plan.warm_up {
            times.push(called.elapsed());
        }
    }
    times.sort_unstable();
    let middle = times.get(times.len() / 2).context("no call was timed")?;
    Ok(middle.as_secs_f64() * 1e6)
}
