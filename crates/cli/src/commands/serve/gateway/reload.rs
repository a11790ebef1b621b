//! Reading the file again: it is checked whole, and what is wrong leaves everything as it was.

use std::task::Poll;

use tokio::sync::MutexGuard;
use trunkline_config::{ServerConfig, ServerName, difference};
use trunkline_hub::Applied;

use super::{Gateway, begin};
use crate::commands::serve::plan::Plan;
use crate::exit::Failure;
use crate::terminal::visible_line;

impl Gateway {
    /// Reads the file again, makes the hub like it, and says in the log what came of it.
    ///
    /// # Errors
    /// What is wrong with the file; nothing has changed.
    #[cfg(unix)]
    pub(super) async fn reload(&self) -> Result<Applied, Failure> {
        let turn = self.inner.turn.lock().await;
        let read = self.plan().source.read();
        let outcome = match read {
            Ok(plan) => self.replace(plan, turn).await,
            Err(failure) => Err(failure),
        };
        self.tell(&outcome);
        outcome
    }

    /// Reads the file again because of a signal, or because something near it has changed; in the latter case it may well
    /// be the same as before.
    pub(super) async fn reread(&self, asked: bool) {
        let turn = self.inner.turn.lock().await;
        let before = self.plan();
        let read = before.source.read();
        let problem = read.as_ref().err().map(ToString::to_string);
        let news = {
            let mut last = self.inner.problem.lock();
            let differs = *last != problem;
            *last = problem;
            differs
        };
        let outcome = match read {
            Ok(plan) if !asked && plan.file.text() == before.file.text() => return,
            Ok(plan) => self.replace(plan, turn).await,
            Err(_) if !asked && !news => return,
            Err(failure) => Err(failure),
        };
        self.tell(&outcome);
    }

    /// Makes the hub like another plan. The servers are known when the turn is over, and connected to after it.
    async fn replace(&self, plan: Plan, turn: MutexGuard<'_, ()>) -> Result<Applied, Failure> {
        let servers = self.prepare(&plan)?;
        let before = self.plan();
        if before.serve != plan.serve {
            tracing::warn!("changes to [serve] need a restart: clients know tools by their names");
        }
        if before.audit != plan.audit {
            tracing::warn!("`audit` counts from the next start on");
        }
        let found = difference(&before.servers, &plan.servers);
        let other: Vec<&ServerConfig> =
            found.added.into_iter().chain(found.changed.iter().map(|changed| changed.after)).collect();
        self.tell_of(&other);
        self.set_plan(plan);
        let mut applying = Box::pin(self.apply(servers));
        if let Poll::Ready(applied) = begin(&mut applying).await {
            return Ok(applied);
        }
        drop(turn);
        Ok(applying.await)
    }

    fn tell(&self, outcome: &Result<Applied, Failure>) {
        let plan = self.plan();
        let file = plan.file.path().display();
        match outcome {
            Ok(applied) => tracing::info!("{file} was read again: {}", sentence(applied)),
            Err(failure) => {
                let told = failure.to_string().replace('\n', "; ");
                tracing::error!("{file} is not used, and what was before goes on: {}", visible_line(&told));
            }
        }
    }
}

fn sentence(applied: &Applied) -> String {
    let names = |what: &str, names: &[ServerName]| {
        let names: Vec<_> = names.iter().map(|name| format!("`{}`", visible_line(name.as_str()))).collect();
        (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
    };
    let failed: Vec<ServerName> = applied.failed.iter().map(|(name, _)| name.clone()).collect();
    let parts = [
        names("added", &applied.added),
        names("removed", &applied.removed),
        names("updated", &applied.updated),
        names("failed", &failed),
    ];
    let told: Vec<String> = parts.into_iter().flatten().collect();
    if told.is_empty() { "no server is different".to_owned() } else { told.join("; ") }
}
