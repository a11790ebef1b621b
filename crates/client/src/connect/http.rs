//! Connecting over HTTP: stateless requests first, then a session, then HTTP+SSE.
//!
//! [`decide_over_http`] and [`falls_back_to_sse`] interpret the responses; this module sends the requests.

use std::sync::Arc;

use trunkline_auth::authorizer::Authorizer;
use trunkline_protocol::{Era, Revision};
use trunkline_transport::Url;

use super::handshake::{self, HandshakeError};
use super::opened_transport::OpenedTransport;
use super::probe::{DiscoverOutcome, ProbeDecision, decide_over_http, falls_back_to_sse};
use super::{
    ConnectAttempts, ConnectPlan, EstablishedConnection, HttpTransportKind, NOT_RESUMABLE,
    refuse_token_exchange,
};
use crate::client_transport::{
    AuthorizedHttp, ChannelTransport, ClientTransport, CustomHeaders, HttpShared, HttpSseChannel,
    StreamableHttpTransport, TransportFailure, TransportFailureKind, unsolicited_channel,
};
use crate::edge::{LegacyEdge, ProtocolEdge};
use crate::error::Error;
use crate::resumable_session::ResumableSession;

/// The parameters of every attempt.
struct HttpConnectContext<'a> {
    url: &'a Url,
    plan: &'a ConnectPlan,
    headers: CustomHeaders,
    /// One for all attempts, so that a token is obtained once.
    authorizer: Option<Arc<Authorizer>>,
}

/// Connects, by the rules for HTTP: the body of an error response determines the era. Temporary failures and
/// rejected credentials are no evidence for either.
///
/// # Errors
/// [`Error::Unauthorized`], or [`Error::Unreachable`] with every attempt.
pub(crate) async fn connect(
    url: &Url,
    plan: &ConnectPlan,
    attempts: &mut ConnectAttempts,
) -> Result<EstablishedConnection, Error> {
    let authorizer = plan.authorizer(url);
    let context = HttpConnectContext { url, plan, headers: plan.custom_headers()?, authorizer };
    if let Some(session) = &plan.resumed {
        return context.resume(session, attempts);
    }
    match plan.pin {
        _ if plan.http_transport == HttpTransportKind::Sse => context.connect_sse(attempts).await,
        Some(pin) if pin.era() == Era::Legacy => {
            context.open_session(context.open_transport()?, pin, attempts).await
        }
        Some(pin) => context.probe(pin, attempts).await,
        None => context.detect_era(attempts).await,
    }
}

impl HttpConnectContext<'_> {
    fn authorized_http(&self) -> AuthorizedHttp {
        AuthorizedHttp::new(self.plan.dialer.clone(), self.url, self.authorizer.clone())
    }

    fn open_transport(&self) -> Result<OpenedTransport, Error> {
        let (sender, receiver) = unsolicited_channel(self.plan.on_dropped.clone());
        let http = self.authorized_http();
        let shared = HttpShared::new(http, self.url, &self.headers, self.plan.http_limits(), sender);
        let shared = shared.map_err(Error::invalid_options)?;
        Ok(OpenedTransport {
            transport: Arc::new(StreamableHttpTransport::new(shared, self.plan.resumed.as_ref())),
            unsolicited: receiver,
            transport_name: "streamable-http",
        })
    }

    /// Continues a session that another client opened. Nothing is requested: if the server has forgotten the session,
    /// the first request opens a new one.
    fn resume(
        &self,
        session: &ResumableSession,
        attempts: &mut ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        let (revision, invalid) = (session.revision(), |cause| Error::InvalidOptions { cause, source: None });
        if self.plan.http_transport == HttpTransportKind::Sse {
            return Err(invalid(NOT_RESUMABLE.to_owned()));
        }
        if self.plan.rejects_revision(revision) {
            return Err(invalid(format!("the session has revision {revision}, and another is pinned")));
        }
        attempts.record("continue a session", format!("at {revision}"));
        let edge = ProtocolEdge::Legacy(LegacyEdge::new(revision));
        Ok(self.open_transport()?.establish(edge, session.description().clone()))
    }

    /// Detects the era of the server, connects in it, and caches it.
    async fn detect_era(&self, attempts: &mut ConnectAttempts) -> Result<EstablishedConnection, Error> {
        let key = self.url.to_full_string();
        let era_cache = &self.plan.era_cache;
        if self.plan.prefers == Era::Legacy {
            match self.open_session(self.open_transport()?, Revision::NEWEST_LEGACY, attempts).await {
                Err(Error::Unreachable(_)) => return self.probe(Revision::NEWEST, attempts).await,
                outcome => return outcome,
            }
        }
        if era_cache.get(&key) == Some(Era::Legacy) {
            match self.open_session(self.open_transport()?, Revision::NEWEST_LEGACY, attempts).await {
                // The cached era is wrong by now.
                Err(Error::Unreachable(_)) => era_cache.remove(&key),
                outcome => return outcome,
            }
        }
        let connected = self.probe(Revision::NEWEST, attempts).await?;
        era_cache.put(&key, connected.description.revision.era());
        Ok(connected)
    }

    /// Probes in a modern revision, and continues as the response indicates; only in that revision if it is pinned.
    async fn probe(
        &self,
        first: Revision,
        attempts: &mut ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        let open = self.open_transport()?;
        let mut requested = first;
        let mut has_retried = false;
        loop {
            let edge = handshake::modern_edge(self.plan, requested);
            // If the revision is pinned, nothing else would be tried, so the server has the timeout of a handshake.
            let limits = &self.plan.limits;
            let within =
                if self.plan.pin.is_some() { limits.handshake_timeout } else { limits.probe_timeout };
            let outcome = open.discover(self.plan, &edge, within, attempts).await;
            let decision = decide_over_http(&outcome, requested);
            if let (Some(pin), Some(other)) = (self.plan.pin, decision.revision())
                && pin != other
            {
                let cause = format!("the server does not speak {pin}: {}", outcome.describe());
                return Err(attempts.connect_error(self.url, cause));
            }
            match (decision, outcome) {
                (ProbeDecision::Modern(revision), DiscoverOutcome::Described(result)) => {
                    let edge = if revision == requested {
                        edge
                    } else {
                        handshake::modern_edge(self.plan, revision)
                    };
                    return open.establish_described(self.url, edge, &result, attempts);
                }
                // At most one retry: a server could list a revision and then reject it, without end.
                (ProbeDecision::Retry(revision), _) if !has_retried => {
                    (requested, has_retried) = (revision, true);
                }
                (ProbeDecision::Legacy(offered) | ProbeDecision::LegacyReconnect(offered), _) => {
                    return self.open_session(open, offered, attempts).await;
                }
                (ProbeDecision::NoCommonRevision(why), _) => {
                    return Err(attempts.connect_error(self.url, why));
                }
                (
                    ProbeDecision::Undetermined | ProbeDecision::Retry(_) | ProbeDecision::Modern(_),
                    outcome,
                ) => {
                    return Err(self.probe_failed(&outcome, attempts));
                }
            }
        }
    }

    /// Opens a session; falls back to HTTP+SSE if the endpoint does not support Streamable HTTP.
    async fn open_session(
        &self,
        open: OpenedTransport,
        offered: Revision,
        attempts: &mut ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        let action = format!("initialize at {offered}");
        match self.initialize(&*open.transport, offered, action, attempts).await {
            Ok((edge, description)) => Ok(open.establish(edge, description)),
            Err(failure)
                if falls_back_to_sse(&failure)
                    && self.plan.http_transport == HttpTransportKind::Any
                    && refuse_token_exchange(self.authorizer.as_ref()).is_ok() =>
            {
                self.fall_back_to_sse(offered, &failure, attempts).await
            }
            Err(failure) => Err(self.handshake_failed(failure, attempts)),
        }
    }

    /// Connects over HTTP+SSE, because the caller chose that transport.
    async fn connect_sse(&self, attempts: &mut ConnectAttempts) -> Result<EstablishedConnection, Error> {
        refuse_token_exchange(self.authorizer.as_ref())?;
        let offered = self.plan.pin.unwrap_or(Revision::NEWEST_LEGACY);
        if offered.era() == Era::Modern {
            let cause = format!("{offered} cannot be used over HTTP+SSE");
            return Err(Error::InvalidOptions { cause, source: None });
        }
        match self.open_sse(attempts).await {
            Ok(open) => self.open_sse_session(open, offered, attempts).await,
            Err(failure) => Err(self.handshake_failed(HandshakeError::Transport(failure), attempts)),
        }
    }

    /// Tries HTTP+SSE, after `initialize` failed over Streamable HTTP.
    async fn fall_back_to_sse(
        &self,
        offered: Revision,
        before: &HandshakeError,
        attempts: &mut ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        match self.open_sse(attempts).await {
            Ok(open) => self.open_sse_session(open, offered, attempts).await,
            // The failure of `initialize` is a better cause than that of the last fallback.
            Err(failure) => Err(match failure.kind {
                TransportFailureKind::Unauthorized { .. } | TransportFailureKind::Authorization(_) => {
                    failure.into()
                }
                _ => attempts.connect_error(self.url, before.cause()),
            }),
        }
    }

    async fn open_sse(&self, attempts: &mut ConnectAttempts) -> Result<OpenedTransport, TransportFailure> {
        let action = "a stream of HTTP+SSE";
        let limit = self.plan.limits.message_bytes;
        let opened = HttpSseChannel::open(self.authorized_http(), self.url, &self.headers, limit).await;
        let channel = opened.inspect_err(|failure| {
            attempts.record(action, HandshakeError::Transport(failure.clone()).describe());
        })?;
        attempts.record(action, "opened");
        let (sender, receiver) = unsolicited_channel(self.plan.on_dropped.clone());
        let transport = Arc::new(ChannelTransport::new(channel, sender, self.plan.channel_limits()));
        Ok(OpenedTransport { transport, unsolicited: receiver, transport_name: "sse" })
    }

    async fn open_sse_session(
        &self,
        open: OpenedTransport,
        offered: Revision,
        attempts: &mut ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        let action = format!("initialize at {offered} over HTTP+SSE");
        match self.initialize(&*open.transport, offered, action, attempts).await {
            Ok((edge, description)) => Ok(open.establish(edge, description)),
            Err(failure) => Err(self.handshake_failed(failure, attempts)),
        }
    }

    async fn initialize(
        &self,
        transport: &dyn ClientTransport,
        offered: Revision,
        action: String,
        attempts: &mut ConnectAttempts,
    ) -> Result<(ProtocolEdge, super::ServerDescription), HandshakeError> {
        let outcome = match handshake::initialize(transport, self.plan, offered).await {
            Ok((_, description)) if self.plan.rejects_revision(description.revision) => {
                transport.close().await;
                let answered = description.revision;
                Err(HandshakeError::InvalidVersion(format!(
                    "the server does not speak {offered}, but {answered}"
                )))
            }
            outcome => outcome,
        };
        attempts.record(
            action,
            match &outcome {
                Ok((_, description)) => format!("answered with {}", description.revision),
                Err(failure) => failure.describe(),
            },
        );
        outcome
    }

    fn handshake_failed(&self, failure: HandshakeError, attempts: &ConnectAttempts) -> Error {
        match failure {
            HandshakeError::Transport(TransportFailure {
                kind: TransportFailureKind::Unauthorized { status, challenge },
                ..
            }) => Error::Unauthorized { status, challenge },
            HandshakeError::Transport(TransportFailure {
                kind: TransportFailureKind::Authorization(error),
                ..
            }) => Error::Authorization(error),
            failure => attempts.connect_error(self.url, failure.cause()),
        }
    }

    /// Returns the error for a probe without a usable outcome.
    fn probe_failed(&self, outcome: &DiscoverOutcome, attempts: &ConnectAttempts) -> Error {
        match outcome {
            DiscoverOutcome::Failed(TransportFailure {
                kind: TransportFailureKind::Unauthorized { status, challenge },
                ..
            }) => Error::Unauthorized { status: *status, challenge: challenge.clone() },
            DiscoverOutcome::Failed(TransportFailure {
                kind: TransportFailureKind::Authorization(error),
                ..
            }) => Error::Authorization(error.clone()),
            outcome => attempts.connect_error(self.url, outcome.cause()),
        }
    }
}
