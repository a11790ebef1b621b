use std::fmt;
use std::sync::Arc;

use trunkline_protocol::Raw;

use super::handshake;
use super::probe::Observation;
use super::{Attempts, Connected, Described, Plan};
use crate::carrier::{AsideReceiver, Carrier};
use crate::edge::Edge;
use crate::error::Error;

/// A way to a server of which it is not known yet whether anybody answers, nor in which era.
pub(super) struct Open {
    pub(super) carrier: Arc<dyn Carrier>,
    pub(super) aside: AsideReceiver,
    /// What kind of transport it is, for people.
    pub(super) transport: &'static str,
}

impl Open {
    /// Asks the server to describe itself, and notes what came.
    pub(super) async fn observe(&self, plan: &Plan, edge: &Edge, attempts: &mut Attempts) -> Observation {
        let observation = handshake::discover(&*self.carrier, plan, edge).await;
        attempts.note(format!("server/discover at {}", edge.revision()), observation.describe());
        observation
    }

    /// Takes the server at the words by which it describes itself.
    ///
    /// # Errors
    /// They make no sense.
    pub(super) fn described(
        self,
        target: impl fmt::Display,
        edge: Edge,
        result: &Raw,
        attempts: &Attempts,
    ) -> Result<Connected, Error> {
        let described = handshake::described(result, edge.revision());
        let described = described.map_err(|problem| attempts.unreachable(target, problem))?;
        Ok(self.connected(edge, described))
    }

    pub(super) fn connected(self, edge: Edge, described: Described) -> Connected {
        let Self { carrier, aside, transport } = self;
        Connected { carrier, edge, described, aside, transport }
    }
}
