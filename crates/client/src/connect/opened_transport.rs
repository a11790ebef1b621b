use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use trunkline_protocol::RawJson;

use super::handshake;
use super::probe::DiscoverOutcome;
use super::{ConnectAttempts, ConnectPlan, EstablishedConnection, ServerDescription};
use crate::client_transport::{ClientTransport, FailureCause, UnsolicitedReceiver};
use crate::edge::ProtocolEdge;
use crate::error::Error;

/// A transport to a server that has not responded yet, with an unknown era.
pub(super) struct OpenedTransport {
    pub(super) transport: Arc<dyn ClientTransport>,
    pub(super) unsolicited: UnsolicitedReceiver,
    /// The name of the transport, for users.
    pub(super) transport_name: &'static str,
}

impl OpenedTransport {
    /// Sends `server/discover`, and records the attempt.
    pub(super) async fn discover(
        &self,
        plan: &ConnectPlan,
        edge: &ProtocolEdge,
        within: Duration,
        attempts: &mut ConnectAttempts,
    ) -> DiscoverOutcome {
        let outcome = handshake::discover(&*self.transport, plan, edge, within).await;
        attempts.record(format!("server/discover at {}", edge.revision()), outcome.describe());
        outcome
    }

    /// Adds the output of the server process to the cause of a failed connection; the report of one that exited has it
    /// already.
    pub(super) fn with_process_output(&self, mut cause: FailureCause) -> FailureCause {
        if !cause.message.contains('\n')
            && let Some(output) = self.transport.process_output()
        {
            cause.message = format!("{}\n{output}", cause.message);
        }
        cause
    }

    /// Establishes the connection with the server's description.
    ///
    /// # Errors
    /// The description cannot be parsed.
    pub(super) fn establish_described(
        self,
        target: impl fmt::Display,
        edge: ProtocolEdge,
        result: &RawJson,
        attempts: &ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        let description = handshake::parse_description(result, edge.revision());
        let description = description.map_err(|problem| attempts.connect_error(target, problem))?;
        Ok(self.establish(edge, description))
    }

    pub(super) fn establish(
        self,
        edge: ProtocolEdge,
        description: ServerDescription,
    ) -> EstablishedConnection {
        let Self { transport, unsolicited, transport_name } = self;
        EstablishedConnection { transport, edge, description, unsolicited, transport_name }
    }
}
