//! Reading the file again. A file that cannot be used leaves everything as it was; a server that cannot be used is left out.
//!
//! # Invariants
//!
//! - A reload does not touch servers that did not change:
//!   `config_edit_is_applied_live_and_keeps_unchanged_servers_connected`.

use std::task::Poll;

use tokio::sync::MutexGuard;
use trunkline_config::{ServerConfig, ServerName, diff};
use trunkline_hub::ApplyReport;

use super::{Gateway, poll_once};
use crate::commands::serve::auth::AuthSettings;
use crate::commands::serve::excluded_server::ExcludedServer;
use crate::commands::serve::plan::ServePlan;
use crate::exit::CliFailure;
use crate::terminal::escape_line;

impl Gateway {
    /// Reloads the file, applies it, and logs the result.
    ///
    /// # Errors
    /// What is wrong with the file; nothing has changed.
    #[cfg(unix)]
    pub(super) async fn reload(&self) -> Result<ApplyReport, CliFailure> {
        let turn = self.inner.reload_lock.lock().await;
        let before = self.plan();
        let outcome = match before.source.read() {
            Ok(plan) => self.apply_plan(self.without_untrusted(plan, &before), turn).await,
            Err(failure) => Err(failure),
        };
        self.log_reload(&outcome);
        outcome.map(|applied| applied.servers)
    }

    /// Reads the file again because of a signal, or because something near it has changed; in the latter case it may well
    /// be the same as before.
    pub(super) async fn reload_if_changed(&self, asked: bool) {
        let turn = self.inner.reload_lock.lock().await;
        let before = self.plan();
        let read = before.source.read();
        let problem = read.as_ref().err().map(ToString::to_string);
        let news = {
            let mut last = self.inner.last_problem.lock();
            let differs = *last != problem;
            *last = problem;
            differs
        };
        let outcome = match read {
            Ok(plan) if !asked && plan.file.text() == before.file.text() => return,
            Ok(plan) => self.apply_plan(self.without_untrusted(plan, &before), turn).await,
            Err(_) if !asked && !news => return,
            Err(failure) => Err(failure),
        };
        self.log_reload(&outcome);
    }

    fn without_untrusted(&self, plan: ServePlan, before: &ServePlan) -> ServePlan {
        plan.without_untrusted(self.inner.trust_mode, Some(before))
    }

    /// Makes the hub like another plan. The servers are known when the turn is over, and connected to after it.
    async fn apply_plan(&self, plan: ServePlan, turn: MutexGuard<'_, ()>) -> Result<AppliedPlan, CliFailure> {
        let servers = self.prepare(&plan)?;
        let before = self.plan();
        if before.serve != plan.serve {
            tracing::warn!("changes to [serve] need a restart");
        }
        if before.store != plan.store {
            tracing::warn!("changes to [store] need a restart");
        }
        if before.audit != plan.audit {
            tracing::warn!("changes to [audit] need a restart");
        }
        if before.telemetry != plan.telemetry {
            tracing::warn!("changes to [telemetry] need a restart");
        }
        if before.vault != plan.vault {
            tracing::warn!("changes to [vault] need a restart");
        }
        if before.auth.is_some() != plan.auth.is_some() {
            tracing::warn!("adding or removing [auth] needs a restart");
        } else if before.auth != plan.auth && !is_auth_reloaded(&before) {
            tracing::warn!("changes to [auth] need a restart as long as it had no issuers");
        }
        let sections = changed_sections(&before, &plan);
        let found = diff(&before.servers, &plan.servers);
        let other: Vec<&ServerConfig> =
            found.added.into_iter().chain(found.changed.iter().map(|changed| changed.after)).collect();
        self.print_servers(&other);
        // Before new servers are known, so that no caller sees one that it may not use.
        self.inner.hub.set_access(&plan.access);
        self.inner.hub.set_caller_rate(plan.limits.principal);
        self.set_plan(plan);
        let mut applying = Box::pin(self.apply(servers));
        if let Poll::Ready(servers) = poll_once(&mut applying).await {
            return Ok(AppliedPlan { servers, sections });
        }
        drop(turn);
        Ok(AppliedPlan { servers: applying.await, sections })
    }

    fn log_reload(&self, outcome: &Result<AppliedPlan, CliFailure>) {
        let plan = self.plan();
        let file = plan.file.path().display();
        match outcome {
            Ok(applied) => {
                self.log_excluded();
                tracing::info!("reloaded {file}: {}", reload_message(applied, &plan.excluded));
            }
            Err(failure) => {
                let message = failure.to_string().replace('\n', "; ");
                tracing::error!("invalid config, keeping the previous one: {}", escape_line(&message));
            }
        }
    }
}

/// What came of a plan: of its servers, and the names of other parts that changed.
struct AppliedPlan {
    servers: ApplyReport,
    sections: Vec<&'static str>,
}

/// Returns the parts besides servers that changed and apply at once; of the others a warning is logged.
fn changed_sections(before: &ServePlan, after: &ServePlan) -> Vec<&'static str> {
    let is_auth_changed = before.auth != after.auth && is_auth_reloaded(before) && after.auth.is_some();
    let mut sections = before.described.changed_sections(&after.described);
    sections.extend((before.access != after.access).then_some("access rules"));
    sections.extend((before.limits != after.limits).then_some("[limits]"));
    sections.extend(is_auth_changed.then_some("[auth]"));
    sections
}

/// Reports whether the table `[auth]` of a plan follows its file: it has issuers, and so a resource server.
fn is_auth_reloaded(plan: &ServePlan) -> bool {
    plan.auth.as_ref().is_some_and(AuthSettings::has_issuers)
}

fn reload_message(
    AppliedPlan { servers: applied, sections }: &AppliedPlan,
    excluded: &[ExcludedServer],
) -> String {
    let quoted = |what: &str, names: &mut dyn Iterator<Item = &str>| {
        let names: Vec<_> = names.map(|name| format!("`{}`", escape_line(name))).collect();
        (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
    };
    let names = |what: &str, names: &[ServerName]| quoted(what, &mut names.iter().map(ServerName::as_str));
    let failed: Vec<ServerName> = applied.failed.iter().map(|(name, _)| name.clone()).collect();
    let parts = [
        names("added", &applied.added),
        names("removed", &applied.removed),
        names("updated", &applied.updated),
        names("failed", &failed),
        quoted("unavailable", &mut excluded.iter().map(|server| &*server.name)),
        (!sections.is_empty()).then(|| format!("changed: {}", sections.join(", "))),
    ];
    let changes: Vec<String> = parts.into_iter().flatten().collect();
    if changes.is_empty() { "nothing changed".to_owned() } else { changes.join("; ") }
}
