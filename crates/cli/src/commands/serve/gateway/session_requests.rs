//! The legacy sessions of a running hub, for the admin socket.

use std::time::SystemTime;

use trunkline_server::http::{HttpService, SessionSummary};
use trunkline_server::session::{StoreError, Timestamp};

use super::Gateway;
use crate::admin::{AdminFailure, AdminFailureKind, AdminResponse, SessionReport, SessionState};

/// The most sessions in one response: an answer has at most 16 MiB.
const MAX_SESSIONS: usize = 10_000;

/// The most subscriptions that are named of one session.
const MAX_SUBSCRIPTIONS: usize = 20;

impl Gateway {
    pub(super) async fn list_sessions(&self) -> AdminResponse {
        let Some(endpoint) = self.inner.endpoint.get() else { return no_sessions() };
        match endpoint.list_sessions(MAX_SESSIONS + 1).await {
            Ok(summaries) => AdminResponse::Sessions(report(endpoint, summaries)),
            Err(error) => unavailable(&error),
        }
    }

    pub(super) async fn end_session(&self, prefix: &str) -> AdminResponse {
        let Some(endpoint) = self.inner.endpoint.get() else { return no_sessions() };
        let listed = match endpoint.list_sessions(usize::MAX).await {
            Ok(listed) => listed,
            Err(error) => return unavailable(&error),
        };
        let is_meant = |summary: &&SessionSummary| {
            !prefix.is_empty() && summary.record.id.to_string().starts_with(prefix)
        };
        let mut meant = listed.iter().filter(is_meant);
        let (Some(only), None) = (meant.next(), meant.next()) else {
            return no_such_session("no session, or more than one, has an id that begins like this");
        };
        match endpoint.end_session(only.record.id, &only.record.principal).await {
            Ok(true) => AdminResponse::Done,
            Ok(false) => no_such_session("the session has ended already"),
            Err(error) => unavailable(&error),
        }
    }
}

fn report(endpoint: &HttpService, mut summaries: Vec<SessionSummary>) -> SessionReport {
    summaries.sort_by_key(|summary| summary.record.created);
    let is_truncated = summaries.len() > MAX_SESSIONS;
    summaries.truncate(MAX_SESSIONS);
    let now = Timestamp::from_system(SystemTime::now());
    let sessions = summaries.iter().map(|summary| state(summary, now)).collect();
    SessionReport { store: endpoint.session_store_kind().to_owned(), sessions, is_truncated }
}

fn state(summary: &SessionSummary, now: Timestamp) -> SessionState {
    let record = &summary.record;
    let client = record.client.as_ref().and_then(|client| client.members().ok());
    let client = client.and_then(|client| {
        let version = client.text("version").map(|version| format!(" {version}")).unwrap_or_default();
        Some(format!("{}{version}", client.text("name")?))
    });
    SessionState {
        id: record.id.short().to_string().trim_end_matches('…').to_owned(),
        principal: record.principal.to_string(),
        client,
        revision: record.revision.to_string(),
        log_level: record.log_level.map(|level| level.as_str().to_owned()),
        subscriptions: record.subscriptions.iter().take(MAX_SUBSCRIPTIONS).cloned().collect(),
        age_s: now.since(record.created).as_secs(),
        idle_s: summary.last_used.map(|used| now.since(used).as_secs()),
        busy: summary.is_busy,
    }
}

fn no_sessions() -> AdminResponse {
    no_such_session("a hub over stdio has no sessions that can be listed")
}

fn no_such_session(what: &str) -> AdminResponse {
    AdminResponse::Failed(AdminFailure { kind: AdminFailureKind::NoSuchSession, what: what.to_owned() })
}

fn unavailable(error: &StoreError) -> AdminResponse {
    AdminResponse::Failed(AdminFailure { kind: AdminFailureKind::Unavailable, what: error.to_string() })
}
