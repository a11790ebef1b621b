use std::net::IpAddr;
use std::sync::Arc;

use trunkline_protocol::Revision;
use trunkline_session::SessionId;
use trunkline_transport::Channel;

use super::ChannelServer;
use super::activity::ChannelActivity;
use super::backpressure::QueuedCalls;
use crate::access_grant::AccessGrant;
use crate::edge::legacy::{SessionTransport, TransportCapabilities};
use crate::env::Env;
use crate::shutdown::DrainPolicy;

/// Settings for an owner that drives the channel itself, as part of something larger.
impl<C: Channel> ChannelServer<C> {
    /// Sets the variables that the client sent when it opened the channel.
    pub(crate) fn with_env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Sets what distinguishes the client from others without a session.
    pub(crate) fn with_client_id(mut self, id: SessionId) -> Self {
        self.id = id;
        self
    }

    /// Sets the address of the peer.
    pub(crate) fn with_remote_address(mut self, address: Option<IpAddr>) -> Self {
        self.remote_address = address;
        self
    }

    /// Sets what the credential grants with which the client opened the channel. The owner ends the channel with it.
    pub(crate) fn with_grant(mut self, grant: Option<Arc<AccessGrant>>) -> Self {
        self.grant = grant;
        self
    }

    /// Describes the transport: a channel carries requests in both directions, and its variables are those of its
    /// session.
    pub(super) fn transport(&self) -> TransportCapabilities {
        TransportCapabilities {
            server_requests: true,
            while_draining: DrainPolicy::Refuse,
            env: Env::NONE,
            grant: self.grant.clone(),
        }
    }

    /// Sets what operators see as the transport of the session.
    pub(crate) fn with_transport_kind(mut self, kind: SessionTransport) -> Self {
        self.transport_kind = kind;
        self
    }

    /// Sets the id of the state between the client's calls.
    pub(crate) fn with_state_id(mut self, state_id: Option<SessionId>) -> Self {
        self.state_id = state_id;
        self
    }

    /// Reports the use of the channel to its owner, who may close it while it is idle.
    pub(crate) fn with_activity(mut self, activity: Arc<ChannelActivity>) -> Self {
        self.activity = Some(activity);
        self
    }

    /// Leaves it to the owner to end the channel when the server stops.
    pub(crate) fn ended_by_owner(mut self) -> Self {
        self.is_owned = true;
        self
    }

    /// Leaves it to the owner to count what its peer has not read.
    pub(crate) fn without_backlog_limit(mut self) -> Self {
        self.backlog = None;
        self
    }

    /// Returns the revision of the session, once there is one.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.session.as_ref().map(|session| session.revision())
    }

    /// Returns the channel.
    pub(crate) fn channel_mut(&mut self) -> &mut C {
        &mut self.channel
    }

    /// Ends the session and cancels its calls; the channel stays open for the last messages.
    pub(crate) fn abandon(&mut self) {
        self.calls.clear();
        self.modern_calls.clear();
        self.subscriptions.clear();
        self.subscription = None;
        self.queued_calls = QueuedCalls::default();
        self.listed = None;
        if let Some(session) = self.session.take() {
            session.end();
        }
    }
}
