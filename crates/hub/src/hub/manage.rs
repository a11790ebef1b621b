use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;
use trunkline_client::{Call, Error};
use trunkline_config::ServerName;
use trunkline_protocol::Raw;

use super::Hub;
use crate::upstream::{Status, Upstream};

/// Whether what a server has is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is.
    On,
    /// It is not; the connection stays.
    Off,
}

/// What came of switching a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toggled {
    /// It was the other way before.
    Changed,
    /// It was so already.
    AsItWas,
}

/// Why something could not be done to a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManageError {
    /// There is no server of this name.
    #[error("there is no server `{0}`")]
    NoSuchServer(String),
    /// The server cannot be reached.
    #[error("server `{server}`: {reason}")]
    Unavailable {
        /// The server.
        server: ServerName,
        /// Why not.
        reason: String,
    },
}

impl Hub {
    /// Switches what a server has on or off. The connection and the calls that run stay as they are.
    ///
    /// # Errors
    /// There is no such server.
    pub fn toggle(&self, name: &str, switch: Switch) -> Result<Toggled, ManageError> {
        let server = self.named(name)?;
        if !server.switch(switch == Switch::On) {
            return Ok(Toggled::AsItWas);
        }
        if self.inner.is_asked() {
            server.want();
        }
        self.inner.rebuild();
        Ok(Toggled::Changed)
    }

    /// Connects to a server now, whatever failed before.
    ///
    /// # Errors
    /// There is no such server, or it cannot be connected to.
    pub async fn connect(&self, name: &str) -> Result<(), ManageError> {
        let server = self.named(name)?;
        let outcome = server.connect_by_hand().await;
        self.inner.rebuild();
        outcome.map_err(|reason| ManageError::Unavailable { server: server.name().clone(), reason })
    }

    /// Ends every connection to a server. Nothing of it is offered until it is connected to again.
    ///
    /// # Errors
    /// There is no such server.
    pub async fn disconnect(&self, name: &str) -> Result<(), ManageError> {
        let server = self.named(name)?;
        server.disconnect();
        self.inner.rebuild();
        server.ended().await;
        Ok(())
    }

    /// Ends every connection to a server and connects anew. What it offers stays until it is listed again.
    ///
    /// # Errors
    /// As [`Hub::connect`].
    pub async fn reconnect(&self, name: &str) -> Result<(), ManageError> {
        let server = self.named(name)?;
        server.drop_connections().await;
        self.connect(name).await
    }

    fn named(&self, name: &str) -> Result<Arc<Upstream>, ManageError> {
        self.inner.server(name).ok_or_else(|| ManageError::NoSuchServer(name.to_owned()))
    }

    /// Returns how every server stands, in the order of the configuration.
    pub fn status(&self) -> Vec<Status> {
        self.inner.servers().iter().map(|server| server.status()).collect()
    }

    /// Returns how one server stands.
    ///
    /// # Errors
    /// There is no such server.
    pub fn status_of(&self, name: &str) -> Result<Status, ManageError> {
        let server = self.named(name)?;
        Ok(server.status())
    }

    /// Asks a server whether it is there, and returns how long it took to say so. It is connected to if it is not.
    ///
    /// # Errors
    /// There is no such server, or it does not answer.
    pub async fn ping(&self, name: &str) -> Result<Duration, ManageError> {
        let server = self.named(name)?;
        let unavailable = |reason: String| ManageError::Unavailable { server: server.name().clone(), reason };
        let lease = server.lease_to_hub().await.map_err(|reason| unavailable(reason.to_string()))?;
        let pinged = match lease.client().ping().await {
            // Where there is no ping, a server is asked who it is.
            Err(Error::Unsupported(_)) => {
                let began = Instant::now();
                let described = lease.client().run(Call::other("server/discover", Raw::EMPTY_OBJECT)).await;
                described.map(|_| began.elapsed())
            }
            pinged => pinged,
        };
        pinged.map_err(|error| unavailable(error.to_string()))
    }

    /// Waits until every server that is needed at the start is connected or has failed, and returns those that are required
    /// and are not there, each with the reason.
    pub async fn ready(&self) -> Vec<(ServerName, String)> {
        let servers = self.inner.servers();
        let required = servers.iter().filter(|server| server.config().required && server.is_enabled());
        let outcomes = required.map(|server| async move {
            let lease = server.lease_to_hub().await;
            lease.err().map(|reason| (server.name().clone(), reason.to_string()))
        });
        join_all(outcomes).await.into_iter().flatten().collect()
    }

    /// Ends every connection, after the calls that run, within a bound; the hub has no servers afterwards.
    pub async fn shutdown(&self) {
        self.inner.save_listings().await;
        self.set_servers(Vec::new()).await;
    }
}
