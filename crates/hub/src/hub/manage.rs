use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use trunkline_client::{ClientCall, Error};
use trunkline_config::ServerName;
use trunkline_protocol::RawJson;

use super::Hub;
use crate::upstream::{Upstream, UpstreamStatus};

/// Whether a server's items are exposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSwitch {
    /// They are.
    On,
    /// They are not; the connection stays open.
    Off,
}

/// The outcome of [`Hub::toggle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToggleOutcome {
    /// The switch was in the other position before.
    Changed,
    /// The switch was in this position already.
    Unchanged,
}

/// An error of managing a server. Errors are equal if their messages are, whatever their sources.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManageError {
    /// There is no server of this name.
    #[error("unknown server `{0}`")]
    NoSuchServer(String),
    /// The server cannot be reached.
    #[error("server `{server}`: {reason}")]
    Unavailable {
        /// The server.
        server: ServerName,
        /// The reason.
        reason: String,
        /// The error of the request to the server, if that is the reason.
        source: Option<Error>,
    },
}

impl PartialEq for ManageError {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::NoSuchServer(one), Self::NoSuchServer(other)) => one == other,
            (
                Self::Unavailable { server, reason, .. },
                Self::Unavailable { server: other_server, reason: other_reason, .. },
            ) => (server, reason) == (other_server, other_reason),
            _ => false,
        }
    }
}

impl Eq for ManageError {}

impl Hub {
    /// Enables or disables a server. Its connection and the running calls are not affected.
    ///
    /// # Errors
    /// There is no such server.
    pub fn toggle(&self, name: &str, switch: ServerSwitch) -> Result<ToggleOutcome, ManageError> {
        let server = self.find_server(name)?;
        if !server.set_enabled(switch == ServerSwitch::On) {
            return Ok(ToggleOutcome::Unchanged);
        }
        if self.inner.was_listed() {
            server.request_lists();
        }
        self.inner.rebuild();
        Ok(ToggleOutcome::Changed)
    }

    /// Connects to a server now, without waiting for the backoff of earlier failures.
    ///
    /// # Errors
    /// There is no such server, or it cannot be connected to.
    pub async fn connect(&self, name: &str) -> Result<(), ManageError> {
        let server = self.find_server(name)?;
        let of_users = self.inner.users.upstreams_of(name);
        let users = join_all(of_users.iter().map(Upstream::connect_manually));
        let (outcome, _) = tokio::join!(server.connect_manually(), users);
        self.inner.rebuild();
        let server = server.name().clone();
        outcome.map_err(|reason| ManageError::Unavailable { server, reason, source: None })
    }

    /// Closes every connection to a server. Its items are hidden until it is connected again.
    ///
    /// # Errors
    /// There is no such server.
    pub async fn disconnect(&self, name: &str) -> Result<(), ManageError> {
        let server = self.find_server(name)?;
        let all: Vec<_> = std::iter::once(server).chain(self.inner.users.upstreams_of(name)).collect();
        all.iter().for_each(|server| server.disconnect());
        self.inner.rebuild();
        join_all(all.iter().map(|server| server.wait_disconnected())).await;
        Ok(())
    }

    /// Closes every connection to a server and connects again. Its items stay exposed until they are listed again.
    ///
    /// # Errors
    /// As [`Hub::connect`].
    pub async fn reconnect(&self, name: &str) -> Result<(), ManageError> {
        let server = self.find_server(name)?;
        let all: Vec<_> = std::iter::once(server).chain(self.inner.users.upstreams_of(name)).collect();
        join_all(all.iter().map(|server| server.restart_connections())).await;
        self.connect(name).await
    }

    /// Reports that a server's credentials may have changed, such as after an authorization. A server that has
    /// rejected them ([`UpstreamConnectionState::NeedsAuth`](crate::UpstreamConnectionState::NeedsAuth)) is connected again when it is needed; others are not affected.
    ///
    /// # Errors
    /// There is no such server.
    pub fn authorized(&self, name: &str) -> Result<(), ManageError> {
        self.find_server(name)?.authorized();
        self.inner.users.upstreams_of(name).iter().for_each(|own| own.authorized());
        Ok(())
    }

    pub(super) fn find_server(&self, name: &str) -> Result<Arc<Upstream>, ManageError> {
        self.inner.server(name).ok_or_else(|| ManageError::NoSuchServer(name.to_owned()))
    }

    /// Returns the status of every server, in the order of the configuration.
    pub fn status(&self) -> Vec<UpstreamStatus> {
        self.inner.servers().iter().map(|server| self.inner.status_for_operator(server)).collect()
    }

    /// Returns the status of one server.
    ///
    /// # Errors
    /// There is no such server.
    pub fn status_of(&self, name: &str) -> Result<UpstreamStatus, ManageError> {
        let server = self.find_server(name)?;
        Ok(self.inner.status_for_operator(&server))
    }

    /// Returns what the program of a server's newest connection printed outside of the protocol: the last lines of its
    /// standard error, and the first line of its standard output that is no message. For operators: the output may be
    /// about any client.
    ///
    /// # Errors
    /// There is no such server.
    pub fn process_output(&self, name: &str) -> Result<Option<String>, ManageError> {
        Ok(self.find_server(name)?.process_output())
    }

    /// Pings a server and returns the round-trip time. Connects first if there is no connection.
    ///
    /// # Errors
    /// There is no such server, or it does not answer.
    pub async fn ping(&self, name: &str) -> Result<Duration, ManageError> {
        let server = self.find_server(name)?;
        let unavailable = |reason: String, source| ManageError::Unavailable {
            server: server.name().clone(),
            reason,
            source,
        };
        let lease = server.lease_for_hub().await.map_err(|reason| unavailable(reason.to_string(), None))?;
        let pinged = match lease.client().ping().await {
            // A server of a revision without `ping` is probed with `server/discover` instead.
            Err(Error::Unsupported(_)) => {
                let began = Instant::now();
                let described =
                    lease.client().run(ClientCall::other("server/discover", RawJson::EMPTY_OBJECT)).await;
                described.map(|_| began.elapsed())
            }
            pinged => pinged,
        };
        pinged.map_err(|error| unavailable(error.to_string(), Some(error)))
    }

    /// Waits until every required server is connected or has failed, and returns the failed ones, each with the
    /// reason.
    pub async fn ready(&self) -> Vec<(ServerName, String)> {
        let servers = self.inner.servers();
        let required = servers.iter().filter(|server| server.config().required && server.is_enabled());
        let outcomes = required.map(|server| async move {
            let lease = server.lease_for_hub().await;
            lease.err().map(|reason| (server.name().clone(), reason.to_string()))
        });
        join_all(outcomes).await.into_iter().flatten().collect()
    }

    /// Stops connecting to servers in the background: when shutdown begins, a server that failed is not tried again, and
    /// one that is new is not started. Calls are still served, and connect where they have to.
    pub fn drain(&self) {
        self.inner.begin_draining();
    }

    /// Closes every connection once its running calls have finished, or after
    /// [`HubLimits::drain_timeout`](crate::HubLimits::drain_timeout). The hub has no servers afterwards. Sessions that
    /// are [stored](crate::HubOptions::upstream_sessions) stay open at the servers.
    pub async fn shutdown(&self) {
        self.inner.save_listings().await;
        let kept = self.inner.keep_sessions().await;
        self.set_servers(Vec::new()).await;
        if let Some(sessions) = kept {
            sessions.release().await;
        }
    }
}
