//! Follows the configuration file: changes, and reload requests.

use std::convert::Infallible;

use super::Gateway;
use crate::file_watcher::FileWatcher;
use crate::signals::HangupSignals;

impl Gateway {
    /// Reloads the file whenever it changes, and on a reload signal.
    pub(super) async fn follow_config(&self, mut hangups: HangupSignals) -> Infallible {
        let mut watch = FileWatcher::start(vec![self.plan().source.path().to_owned()]);
        loop {
            let asked = tokio::select! {
                () = watch.changed() => false,
                () = hangups.next() => true,
            };
            if let Some(audit) = self.inner.audit.get().filter(|_| asked) {
                audit.reopen();
            }
            let gateway = self.clone();
            // A server that is slow to start must not keep the next change waiting.
            tokio::spawn(async move { gateway.reload_if_changed(asked).await });
        }
    }
}
