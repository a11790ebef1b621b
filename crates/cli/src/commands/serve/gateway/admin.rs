use std::convert::Infallible;
use std::path::Path;

use super::Gateway;
#[cfg(unix)]
use crate::admin::{self, AdminSocket};
use crate::exit::CliFailure;

/// The admin socket of a hub.
#[cfg(unix)]
pub(super) struct GatewaySocket {
    socket: AdminSocket,
}

/// The platform has no socket that only one user can access.
#[cfg(not(unix))]
pub(super) enum GatewaySocket {}

#[cfg(unix)]
impl GatewaySocket {
    /// Listens on the given path, or else on the one derived from the file.
    ///
    /// # Errors
    /// The given path cannot be used.
    pub(super) fn open(named: Option<&Path>, file: &Path) -> Result<Option<Self>, CliFailure> {
        if let Some(path) = named {
            let socket = AdminSocket::bind(path).map_err(|error| {
                CliFailure::configuration(format!("cannot use admin socket {}: {error}", path.display()))
                    .hint("use a path of at most 90 characters in an existing folder that you own")
            })?;
            return Ok(Some(Self { socket }));
        }
        let Some(path) = admin::admin_socket_path(file) else { return Ok(None) };
        match AdminSocket::bind_in_own_folder(&path) {
            Ok(socket) => Ok(Some(Self { socket })),
            Err(error) => {
                // The hub serves without the socket, and still reloads its file on changes.
                tracing::warn!(%error, "no admin socket at {}", path.display());
                Ok(None)
            }
        }
    }

    /// Removes the path of the socket.
    pub(super) fn unlink(&self) {
        self.socket.unlink();
    }

    /// Handles requests. It never returns.
    pub(super) async fn serve(&self, gateway: &Gateway) -> Infallible {
        tracing::debug!("admin socket at {}", self.socket.path().display());
        let (gateway, events) = (gateway.clone(), gateway.hub().events().clone());
        let manage = move |request| {
            let gateway = gateway.clone();
            async move { gateway.handle_request(request).await }
        };
        self.socket.serve(Some(events), manage).await
    }
}

#[cfg(not(unix))]
impl GatewaySocket {
    /// Opens none.
    ///
    /// # Errors
    /// A path was given.
    pub(super) fn open(named: Option<&Path>, _: &Path) -> Result<Option<Self>, CliFailure> {
        match named {
            Some(_) => Err(CliFailure::configuration("a running hub can be managed only on Unix")
                .hint("edit its config file; the hub reloads it")),
            None => Ok(None),
        }
    }

    pub(super) fn unlink(&self) {
        match *self {}
    }

    pub(super) fn serve(&self, _: &Gateway) -> std::future::Pending<Infallible> {
        match *self {}
    }
}
