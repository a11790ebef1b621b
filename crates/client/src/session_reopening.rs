//! Opens the session of a client again after the server has lost it.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::client::{ClientInner, CurrentSession};
use crate::{Error, ServerInfo, session_listener};

impl ClientInner {
    /// Opens a session again that the server has lost, unless a concurrent request has done so already.
    pub(crate) fn reopen_session(
        self: &Arc<Self>,
        lost: &Arc<CurrentSession>,
    ) -> BoxFuture<'_, Result<(), Error>> {
        let lost = lost.clone();
        Box::pin(async move {
            let one_at_a_time = self.reopen_lock.lock().await;
            let current = self.session.load_full();
            if !Arc::ptr_eq(&current, &lost) {
                return Ok(());
            }
            let (edge, description) =
                crate::connect::initialize(&*self.transport, &self.plan, lost.info.revision).await?;
            let info = ServerInfo {
                eras: lost.info.eras,
                revision: description.revision,
                identity: description.identity,
                capabilities: description.capabilities,
                instructions: description.instructions,
                transport: lost.info.transport,
                attempts: lost.info.attempts.clone(),
            };
            self.session.store(Arc::new(CurrentSession { edge, info: Arc::new(info) }));
            drop(one_at_a_time);
            session_listener::restore_session(self).await;
            Ok(())
        })
    }
}
