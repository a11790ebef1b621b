use std::fmt;
use std::sync::Arc;

use trunkline_protocol::RawJson;

use super::handshake;
use super::probe::DiscoverOutcome;
use super::{ConnectAttempts, ConnectPlan, EstablishedConnection, ServerDescription};
use crate::client_transport::{ClientTransport, UnsolicitedReceiver};
use crate::edge::ProtocolEdge;
use crate::error::Error;

/// A way to a server of which it is not known yet whether anybody answers, nor in which era.
pub(super) struct OpenedTransport {
    pub(super) transport: Arc<dyn ClientTransport>,
    pub(super) unsolicited: UnsolicitedReceiver,
    /// What kind of transport it is, for people.
    pub(super) transport_name: &'static str,
}

impl OpenedTransport {
    /// Asks the server to describe itself, and notes what came.
    pub(super) async fn discover(
        &self,
        plan: &ConnectPlan,
        edge: &ProtocolEdge,
        attempts: &mut ConnectAttempts,
    ) -> DiscoverOutcome {
        let observation = handshake::discover(&*self.transport, plan, edge).await;
        attempts.record(format!("server/discover at {}", edge.revision()), observation.describe());
        observation
    }

    /// Takes the server at the words by which it describes itself.
    ///
    /// # Errors
    /// They make no sense.
    pub(super) fn establish_described(
        self,
        target: impl fmt::Display,
        edge: ProtocolEdge,
        result: &RawJson,
        attempts: &ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        let described = handshake::parse_description(result, edge.revision());
        let described = described.map_err(|problem| attempts.connect_error(target, problem))?;
        Ok(self.establish(edge, described))
    }

    pub(super) fn establish(self, edge: ProtocolEdge, described: ServerDescription) -> EstablishedConnection {
        let Self { transport: carrier, unsolicited: aside, transport_name: transport } = self;
        EstablishedConnection {
            transport: carrier,
            edge,
            description: described,
            unsolicited: aside,
            transport_name: transport,
        }
    }
}
