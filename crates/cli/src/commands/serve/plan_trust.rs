//! Trust in the file of a hub: a prompt at the start, and later what is not trusted is left out.

use std::mem;
use std::sync::Arc;

use super::excluded_server::ExcludedServer;
use super::plan::ServePlan;
use crate::exit::CliFailure;
use crate::terminal::escape_line;
use crate::trust::{self, TrustItem, TrustSubject};

/// Whether what a file starts has to be trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrustMode {
    /// The user is prompted once, and the answer is stored.
    Ask,
    /// The operator trusts the file, whatever it contains (`--trust`).
    Granted,
}

impl ServePlan {
    /// Prompts for trust in what is not trusted yet, before anything is started.
    ///
    /// # Errors
    /// There is no terminal, or the user declines.
    pub(super) fn ensure_trusted(self, mode: TrustMode) -> Result<Self, CliFailure> {
        if mode == TrustMode::Granted {
            return Ok(self);
        }
        let untrusted = trust::untrusted_items(&self.file);
        let is_used = |item: &TrustItem| item.enabled && self.excluded(&item.name).is_none();
        if !untrusted.iter().any(is_used) {
            return Ok(self.without_untrusted(mode, None));
        }
        trust::ask(self.file.path(), &untrusted)?;
        if let Err(failure) = trust::trust_items(self.file.path(), &untrusted) {
            tracing::warn!("{failure}");
        }
        Ok(self)
    }

    /// Leaves out what is not trusted. Of a server that the hub has already, only the change is left out.
    pub(super) fn without_untrusted(mut self, mode: TrustMode, before: Option<&Self>) -> Self {
        let untrusted = match mode {
            TrustMode::Ask => trust::untrusted_items(&self.file),
            TrustMode::Granted => return self,
        };
        let path = self.file.path().display().to_string();
        for mut server in mem::take(&mut self.servers) {
            let is_it = |item: &&TrustItem| {
                item.subject != TrustSubject::Command && server.name == item.name.as_str()
            };
            if !untrusted.iter().any(|item| is_it(&item)) {
                self.servers.push(server);
                continue;
            }
            let known = before.and_then(|plan| plan.servers.iter().find(|known| known.name == server.name));
            match known {
                Some(known) => {
                    let name = escape_line(server.name.as_str());
                    tracing::warn!(
                        server = &*name,
                        "its changed command is not trusted, keeping the previous one; review {path}, then run `trunkline trust {path}`"
                    );
                    server.location = known.location.clone();
                    server.auth = known.auth.clone();
                    server.caller_env.clone_from(&known.caller_env);
                    self.servers.push(server);
                }
                None => self.excluded.push(ExcludedServer::untrusted(&server, &path)),
            }
        }
        if untrusted.iter().any(|item| item.subject == TrustSubject::Command) {
            tracing::warn!(
                "new or changed [commands] and [policy] are not trusted and have no effect; review {path}, then run `trunkline trust {path}`"
            );
            self.described = before.map(|plan| Arc::clone(&plan.described)).unwrap_or_default();
        }
        self
    }
}
