//! Trust in the file of a hub: a prompt at the start, and later what is not trusted is left out.

use std::mem;
use std::sync::Arc;

use super::excluded_server::ExcludedServer;
use super::plan::ServePlan;
use crate::exit::CliFailure;
use crate::terminal::escape_line;
use crate::trust::{self, TrustItem, TrustSubject};

/// Whether the commands of a file need trust first.
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
        let is_excluded =
            |item: &TrustItem| self.excluded(&item.name).is_some() && item.is_server(&item.name);
        let is_used = |item: &TrustItem| item.enabled && !is_excluded(item);
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
            if !untrusted.iter().any(|item| item.is_server(server.name.as_str())) {
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
        let settings = untrusted.iter().filter(|item| item.subject == TrustSubject::Setting);
        let names: Vec<&str> = settings.map(|item| item.name.as_str()).collect();
        if !names.is_empty() {
            let names = names.join(", ");
            tracing::warn!(
                "not trusted and without effect: new or changed {names}; review {path}, then run `trunkline trust {path}`"
            );
        }
        names.iter().for_each(|name| self.keep_setting(name, before));
        self
    }

    /// Replaces a setting that is not trusted by the one that the hub has.
    fn keep_setting(&mut self, name: &str, before: Option<&Self>) {
        match name {
            "[audit]" => self.audit = before.map(|plan| plan.audit.clone()).unwrap_or_default(),
            "[auth]" => self.auth = before.and_then(|plan| plan.auth.clone()),
            "[vault]" => self.vault = before.and_then(|plan| plan.vault.clone()),
            "[telemetry]" => {
                self.telemetry = before.map(|plan| plan.telemetry.clone()).unwrap_or_default();
            }
            "[store]" => self.store = before.and_then(|plan| plan.store.clone()),
            "[serve]" => self.serve = before.map(|plan| plan.serve.clone()).unwrap_or_default(),
            "[limits]" => self.limits = before.map(|plan| plan.limits).unwrap_or_default(),
            "[access]" => self.access = before.map(|plan| plan.access.clone()).unwrap_or_default(),
            // The manifests are served with the commands.
            _ => self.described = before.map(|plan| Arc::clone(&plan.described)).unwrap_or_default(),
        }
    }
}
