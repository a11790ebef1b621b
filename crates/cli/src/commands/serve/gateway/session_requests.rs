//! The legacy sessions of a running hub, for the admin socket and the console.

use std::time::SystemTime;

use trunkline_server::http::{SessionSummary, SessionTransport};
use trunkline_server::session::{SessionRecord, StoreError, Timestamp};

use super::{Gateway, SessionSource};
use crate::admin::{AdminFailureKind, SessionReport, SessionState};

/// The most subscriptions that are named of one session.
const MAX_SUBSCRIPTIONS: usize = 20;

/// Why sessions are not listed, or one is not ended.
#[derive(Debug)]
pub(super) struct SessionFailure {
    pub(super) kind: AdminFailureKind,
    pub(super) what: String,
}

impl SessionSource {
    async fn list(&self, most: usize) -> Result<Vec<SessionSummary>, StoreError> {
        match self {
            Self::Http(endpoint) => endpoint.list_sessions(most).await,
            Self::Stdio(host) => Ok(host.channel_sessions(most)),
        }
    }

    async fn end(&self, record: &SessionRecord) -> Result<bool, StoreError> {
        match self {
            Self::Http(endpoint) => endpoint.end_session(record.id, &record.principal).await,
            Self::Stdio(_) => Ok(false),
        }
    }

    fn store_kind(&self) -> &'static str {
        match self {
            Self::Http(endpoint) => endpoint.session_store_kind(),
            Self::Stdio(_) => "memory",
        }
    }
}

impl Gateway {
    /// Returns the sessions, up to a number.
    ///
    /// # Errors
    /// The hub is not served yet, or its store failed.
    pub(super) async fn list_sessions(&self, most: usize) -> Result<SessionReport, SessionFailure> {
        let source = self.inner.sessions.get().ok_or_else(not_served)?;
        let summaries = source.list(most.saturating_add(1)).await.map_err(unavailable)?;
        Ok(report(source, summaries, most))
    }

    /// Ends the session that has an id which begins like this.
    ///
    /// # Errors
    /// There is not exactly one, or it cannot be ended.
    pub(super) async fn end_session(&self, prefix: &str) -> Result<(), SessionFailure> {
        let source = self.inner.sessions.get().ok_or_else(not_served)?;
        let listed = source.list(usize::MAX).await.map_err(unavailable)?;
        let is_meant = |summary: &&SessionSummary| {
            !prefix.is_empty() && summary.record.id.to_string().starts_with(prefix)
        };
        let mut meant = listed.iter().filter(is_meant);
        let (Some(only), None) = (meant.next(), meant.next()) else {
            return Err(no_such_session("no session, or more than one, has an id that begins like this"));
        };
        if only.transport == SessionTransport::Stdio {
            return Err(no_such_session("a session over stdio ends with its client"));
        }
        match source.end(&only.record).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(no_such_session("the session has ended already")),
            Err(error) => Err(unavailable(error)),
        }
    }
}

fn report(source: &SessionSource, mut summaries: Vec<SessionSummary>, most: usize) -> SessionReport {
    summaries.sort_by_key(|summary| summary.record.created);
    let is_truncated = summaries.len() > most;
    summaries.truncate(most);
    let now = Timestamp::from_system(SystemTime::now());
    let sessions = summaries.iter().map(|summary| state(summary, now)).collect();
    SessionReport { store: source.store_kind().to_owned(), sessions, is_truncated }
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
        transport: summary.transport.to_string(),
        log_level: record.log_level.map(|level| level.as_str().to_owned()),
        subscriptions: record.subscriptions.iter().take(MAX_SUBSCRIPTIONS).cloned().collect(),
        age_s: now.since(record.created).as_secs(),
        idle_s: summary.last_used.map(|used| now.since(used).as_secs()),
        busy: summary.is_busy,
    }
}

fn not_served() -> SessionFailure {
    no_such_session("the hub is starting and has no sessions yet")
}

fn no_such_session(what: &str) -> SessionFailure {
    SessionFailure { kind: AdminFailureKind::NoSuchSession, what: what.to_owned() }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what a failed outcome is mapped by")]
fn unavailable(error: StoreError) -> SessionFailure {
    SessionFailure { kind: AdminFailureKind::Unavailable, what: error.to_string() }
}
