//! The two things that are said first, over any carrier.

use std::time::Duration;

use tokio::time::timeout;
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::{Method, Raw, Revision};

use super::probe::Observation;
use super::{Described, Plan};
use crate::call::Call;
use crate::carrier::{Arrived, Carrier, Exchange, Loss};
use crate::edge::{Edge, Extras, Legacy, Modern, legacy, modern};
use crate::error::{Error, Refused};

/// Asks a server to describe itself in a modern revision, and says what came of it.
///
/// Where nothing else would be tried, a server has as much time for it as for a handshake.
pub(crate) async fn discover(carrier: &dyn Carrier, plan: &Plan, edge: &Edge) -> Observation {
    let limits = &plan.limits;
    let within = if plan.pin.is_some() { limits.connect_within } else { limits.probe_within };
    let outgoing = match edge.write(plan.ids.next(), &Call::of(Method::Discover), Extras::default()) {
        Ok(outgoing) => outgoing,
        // Nothing that is written here can be wrong.
        Err(error) => return Observation::Lost(Loss::not_reached(error.to_string())),
    };
    match answer(carrier.request(outgoing), within).await {
        None => Observation::Silence,
        Some(Ok(Ok(result))) => Observation::Described(result.into_raw()),
        Some(Ok(Err(error))) => Observation::Refused(Refused::read(&error)),
        Some(Err(loss)) => Observation::Lost(loss),
    }
}

/// Makes the edge of a modern revision.
pub(crate) fn modern_edge(plan: &Plan, revision: Revision) -> Edge {
    Edge::Modern(Modern::new(revision, &plan.identity, &plan.capabilities))
}

/// Reads how a server describes itself.
pub(crate) fn described(result: &Raw, revision: Revision) -> Result<Described, String> {
    modern::read_discovered(result, revision)
}

/// Opens a session: `initialize`, its answer, and `notifications/initialized`.
///
/// # Errors
/// What came instead of an answer that opens a session.
pub(crate) async fn initialize(
    carrier: &dyn Carrier,
    plan: &Plan,
    offered: Revision,
) -> Result<(Edge, Described), Failure> {
    let outgoing = legacy::initialize(plan.ids.next(), offered, &plan.identity, &plan.capabilities);
    let within = plan.limits.connect_within;
    let described = match answer(carrier.request(outgoing), within).await {
        None => return Err(Failure::Silence(within)),
        Some(Err(loss)) => return Err(Failure::Lost(loss)),
        Some(Ok(Err(error))) => return Err(Failure::Refused(Refused::read(&error))),
        Some(Ok(Ok(result))) => legacy::read_initialized(&result.detached()).map_err(Failure::Version)?,
    };
    let initialized = carrier.post(legacy::initialized(described.revision));
    match timeout(within, initialized).await {
        Ok(Ok(())) => Ok((Edge::Legacy(Legacy::new(described.revision)), described)),
        Ok(Err(loss)) => Err(Failure::Lost(loss)),
        Err(_) => Err(Failure::Silence(within)),
    }
}

/// Why a session could not be opened.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There was no answer in time.
    Silence(Duration),
    /// There will be none.
    Lost(Loss),
    /// The server answered with an error.
    Refused(Refused),
    /// The server answered with something that opens no session.
    Version(String),
}

impl Failure {
    /// Says what was seen, for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Silence(within) => format!("no answer within {within:?}"),
            Self::Lost(loss) => Error::from(loss.clone()).to_string(),
            Self::Refused(refused) => format!("error {}: {}", refused.code, refused.message),
            Self::Version(problem) => problem.clone(),
        }
    }
}

/// Waits for the last word of an exchange; nothing if it does not come in time.
async fn answer(mut exchange: Exchange, within: Duration) -> Option<Result<Result<RawResult, Raw>, Loss>> {
    let last = async {
        loop {
            match exchange.next().await {
                Some(Arrived::Response(outcome)) => return Ok(outcome),
                Some(Arrived::Lost(loss)) => return Err(loss),
                // Before there is a session, nothing else is for us.
                Some(Arrived::Notice(_) | Arrived::Question(_) | Arrived::Skipped) => {}
                None => return Err(Loss::may_have_reached("there was no answer")),
            }
        }
    };
    timeout(within, last).await.ok()
}
