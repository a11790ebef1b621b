//! The directories that a client works in, and what lies within them.
//!
//! Roots are a client's advice, not a right: [`Sandbox`] is for tools that must not leave what the operator allows.
//!
//! # Invariants
//!
//! - A sandbox never reads outside of its roots, whatever symlinks or `..` a path has:
//!   `a_sandbox_reads_only_below_what_is_allowed`.

mod file_uri;
mod sandbox;
mod session;
mod within;

use std::path::Path;
use std::time::Duration;

use trunkline_protocol::model::Root;

pub use self::file_uri::root_path;
pub use self::sandbox::{Sandbox, SandboxError};
use self::session::RootsLookup;
pub(crate) use self::session::{ClientRoots, client_info_roots};
use crate::call::{AskError, Context, roots};

/// How long a call waits for an answer that is already on its way.
const PENDING_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a call waits for the answer to its own question; some clients declare roots and never tell them.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The roots that are taken of one client.
const MAX_ROOTS: usize = 256;

/// The key of the question for roots.
const KEY: &str = "roots";

impl Context {
    /// Returns the directories that the client works in.
    ///
    /// A legacy session is asked once and again when it says that they have changed; any other caller is asked once for
    /// each call. A legacy client that does not answer in time has the roots that are known of it, perhaps none.
    ///
    /// Revision 2026-07-28 still has roots, and deprecates them: a path can be an argument of the tool instead.
    ///
    /// # Errors
    /// As [`Context::ask`]: a client without roots cannot be asked for them.
    pub async fn roots(&self) -> Result<Vec<Root>, AskError> {
        let Some(session) = self.shared().scope().session() else {
            let asked = self.shared().roots().get_or_try_init(|| self.ask(roots().key(KEY))).await;
            return asked.map(|roots| roots.iter().take(MAX_ROOTS).cloned().collect());
        };
        let known = &session.roots;
        match known.lookup() {
            RootsLookup::Known(roots) => Ok(roots),
            RootsLookup::Pending => {
                let _ = tokio::time::timeout(PENDING_TIMEOUT, known.wait_settled()).await;
                Ok(known.best_known())
            }
            RootsLookup::Request(asking) => {
                let answered = tokio::time::timeout(ANSWER_TIMEOUT, self.ask(roots().key(KEY))).await;
                drop(asking);
                // The session has learned them from the answer, and merged them with what it knew.
                match (answered, known.best_known()) {
                    (Ok(Err(error)), best) if best.is_empty() => Err(error),
                    (_, best) => Ok(best),
                }
            }
        }
    }

    /// Returns the roots that are known of the client without asking it: those of a legacy session that were asked for
    /// before, or that are on their way.
    pub async fn known_roots(&self) -> Option<Vec<Root>> {
        let known = &self.shared().scope().session()?.roots;
        // One that is not answered in time has the roots that it had before, if it ever said which.
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
    /// A file that does not exist yet lies where it would be made. A relative path is taken from the primary root. By the
    /// time that the path is used it may lead elsewhere; [`Sandbox`] has no such gap.
    ///
    /// # Errors
    /// As [`Context::roots`].
    pub async fn in_roots(&self, path: impl AsRef<Path>) -> Result<bool, AskError> {
        let (roots, path) = (self.roots().await?, path.as_ref().to_owned());
        let looked = tokio::task::spawn_blocking(move || within::contains(&roots, &path)).await;
        Ok(looked.unwrap_or(false))
    }
}
