use std::convert::Infallible;
use std::path::Path;

use super::Gateway;
#[cfg(unix)]
use crate::admin::{self, AdminSocket};
use crate::exit::Failure;

/// Where those who run a hub talk to it.
#[cfg(unix)]
pub(super) struct Socket {
    socket: AdminSocket,
}

/// There is no socket here that one user alone can reach.
#[cfg(not(unix))]
pub(super) enum Socket {}

#[cfg(unix)]
impl Socket {
    /// Listens where somebody said, or else where it follows from the file.
    ///
    /// # Errors
    /// Where somebody said is no place for it.
    pub(super) fn open(named: Option<&Path>, file: &Path) -> Result<Option<Self>, Failure> {
        if let Some(path) = named {
            let socket = AdminSocket::at(path).map_err(|error| {
                Failure::configuration(format!("admin socket {} cannot be used: {error}", path.display()))
                    .hint("give a path of at most 90 characters in a folder that exists and is your own")
            })?;
            return Ok(Some(Self { socket }));
        }
        let Some(path) = admin::of_config(file) else { return Ok(None) };
        match AdminSocket::in_own_folder(&path) {
            Ok(socket) => Ok(Some(Self { socket })),
            Err(error) => {
                // It serves all the same, and its file is read again when it changes.
                tracing::warn!(%error, "this hub cannot be managed at {}", path.display());
                Ok(None)
            }
        }
    }

    /// Lets nobody find it any more.
    pub(super) fn take_away(&self) {
        self.socket.take_away();
    }

    /// Does what is asked for. It never returns.
    pub(super) async fn serve(&self, gateway: &Gateway) -> Infallible {
        tracing::debug!("managed at {}", self.socket.path().display());
        let gateway = gateway.clone();
        let manage = move |request| {
            let gateway = gateway.clone();
            async move { gateway.manage(request).await }
        };
        self.socket.serve(manage).await
    }
}

#[cfg(not(unix))]
impl Socket {
    /// Opens none.
    ///
    /// # Errors
    /// Somebody wants one.
    pub(super) fn open(named: Option<&Path>, _: &Path) -> Result<Option<Self>, Failure> {
        match named {
            Some(_) => Err(Failure::configuration("a running hub can be managed only on Unix")
                .hint("edit its file, which it reads again")),
            None => Ok(None),
        }
    }

    pub(super) fn take_away(&self) {
        match *self {}
    }

    pub(super) fn serve(&self, _: &Gateway) -> std::future::Pending<Infallible> {
        match *self {}
    }
}
