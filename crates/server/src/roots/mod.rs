//! The roots of a client, and the files within them.
//!
//! Roots are a client's advice, not a permission: [`Sandbox`] is for tools that must not leave the directories that
//! the operator allows.
//!
//! # Invariants
//!
//! - A sandbox never reads outside of its roots, whatever symlinks or `..` a path has:
//!   `sandbox_reads_only_inside_allowed_directories`.

mod file_uri;
mod sandbox;
mod session;
mod session_roots;
mod within;

use std::path::Path;
use std::time::Duration;

use trunkline_protocol::model::Root;

pub use self::file_uri::root_path;
pub use self::sandbox::{Sandbox, SandboxError};
use self::session::RootsLookup;
pub(crate) use self::session::{ClientRoots, client_info_roots};
pub use self::session_roots::SessionRoots;
use crate::call::{AskError, Context, roots};

/// How long a call waits for a response to a request that is already open.
const PENDING_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a call waits for the response to its own request; some clients declare roots and never list them.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The most roots that are read of one client.
const MAX_ROOTS: usize = 256;

/// The key of the input request for roots.
const KEY: &str = "roots";

impl Context {
    /// Returns the directories that the client works in.
    ///
    /// In a legacy session the first call that needs them requests them, and one after the client has reported a change
    /// requests them again; any other call requests them once. A legacy client that does not respond in time has its last known roots, perhaps none.
    ///
    /// Revision 2026-07-28 still has roots, and deprecates them: a path can be an argument of the tool instead.
    ///
    /// # Errors
    /// As [`Context::ask`]: a client may not support roots.
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        let Some(session) = self.shared().scope().session() else {
            let listed = self.shared().roots().get_or_try_init(|| self.ask(roots().key(KEY))).await;
            return listed.map(|roots| roots.iter().take(MAX_ROOTS).cloned().collect());
        };
        let known = &session.roots;
        // One call waits for the client once, however often it uses the roots.
        let waited = self.shared().roots();
        if waited.initialized() {
            return Ok(known.best_known());
        }
        match known.lookup() {
            RootsLookup::Known(roots) => Ok(roots),
            RootsLookup::Pending => {
                if tokio::time::timeout(PENDING_TIMEOUT, known.wait_settled()).await.is_err() {
                    let _ = waited.set(Vec::new());
                }
                Ok(known.best_known())
            }
            RootsLookup::Request(asking) => {
                let answered = tokio::time::timeout(ANSWER_TIMEOUT, self.ask(roots().key(KEY))).await;
                drop(asking);
                if answered.is_err() {
                    let _ = waited.set(Vec::new());
                }
                // The session has stored them from the response, and merged them with the roots of `clientInfo`.
                match (answered, known.best_known()) {
                    (Ok(Err(error)), best) if best.is_empty() => Err(error),
                    (_, best) => Ok(best),
                }
            }
        }
    }

    /// Returns the roots of the client that are known without a new request: those of a legacy session that were
    /// requested before, or that are still being requested.
    pub async fn known_roots(&self) -> Option<Vec<Root>> {
        let known = &self.shared().scope().session()?.roots;
        // A client that does not respond in time has its previous roots, if it ever listed any.
        let _ = tokio::time::timeout(PENDING_TIMEOUT, known.wait_settled()).await;
        known.listed()
    }

    /// Returns the first of the client's roots, if it has any.
    ///
    /// # Errors
    /// As [`Context::roots`].
    pub async fn primary_root(&self) -> Result<Option<Root>, AskError> {
        Ok(self.roots().await?.into_iter().next())
    }

    /// Reports whether a path lies within one of the client's roots, with `..` and symbolic links resolved.
    ///
    /// A file that does not exist yet lies where it would be created. A relative path is resolved against the primary
    /// root. By the time that the path is used it may lead elsewhere; [`Sandbox`] has no such race.
    ///
    /// # Errors
    /// As [`Context::roots`].
    pub async fn in_roots(&self, path: impl AsRef<Path>) -> Result<bool, AskError> {
        let (roots, path) = (self.roots().await?, path.as_ref().to_owned());
        let looked = tokio::task::spawn_blocking(move || within::contains(&roots, &path)).await;
        Ok(looked.unwrap_or(false))
    }
}
