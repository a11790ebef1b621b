//! Connecting over HTTP: requests that stand alone first, then a session, then HTTP+SSE.
//!
//! What an answer means is decided by [`judge_http`] and [`descends`]; here the questions are asked.

use std::sync::Arc;

use trunkline_protocol::{Era, Revision};
use trunkline_transport::Url;

use super::handshake::{self, HandshakeError};
use super::opened_transport::OpenedTransport;
use super::probe::{DiscoverOutcome, ProbeDecision, decide_over_http, falls_back_to_sse};
use super::{ConnectAttempts, ConnectPlan, EstablishedConnection, HttpTransportKind};
use crate::client_transport::{
    ChannelTransport, ClientTransport, CustomHeaders, HttpSseChannel, StreamableHttpTransport,
    TransportFailure, TransportFailureKind, unsolicited_channel,
};
use crate::edge::ProtocolEdge;
use crate::error::Error;

/// What is the same in every attempt.
struct HttpConnectContext<'a> {
    url: &'a Url,
    plan: &'a ConnectPlan,
    headers: CustomHeaders,
}

/// Connects, by the rules for HTTP: the body of a refusal decides about the era, and what only says that this was a bad
/// moment or the wrong credentials decides nothing.
///
/// # Errors
/// [`Error::Unauthorized`], or [`Error::Unreachable`] with every attempt.
pub(crate) async fn connect(
    url: &Url,
    plan: &ConnectPlan,
    attempts: &mut ConnectAttempts,
) -> Result<EstablishedConnection, Error> {
    let way = HttpConnectContext { url, plan, headers: plan.custom_headers()? };
    match plan.pin {
        _ if plan.http_transport == HttpTransportKind::Sse => way.connect_sse(attempts).await,
        Some(pin) if pin.era() == Era::Legacy => way.open_session(way.open_transport()?, pin, attempts).await,
        Some(pin) => way.probe(pin, attempts).await,
        None => way.detect_era(attempts).await,
    }
}

impl HttpConnectContext<'_> {
    fn open_transport(&self) -> Result<OpenedTransport, Error> {
        let (sender, receiver) = unsolicited_channel();
        let dialer = self.plan.dialer.clone();
        let carrier =
            StreamableHttpTransport::new(dialer, self.url, &self.headers, self.plan.http_limits(), sender);
        let carrier = carrier.map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(OpenedTransport {
            transport: Arc::new(carrier),
            unsolicited: receiver,
            transport_name: "streamable-http",
        })
    }

    /// Connects in whichever era the server turns out to be of, and remembers it.
    async fn detect_era(&self, attempts: &mut ConnectAttempts) -> Result<EstablishedConnection, Error> {
        let key = self.url.to_full_string();
        let verdicts = &self.plan.era_cache;
        if self.plan.prefers == Era::Legacy {
            match self.open_session(self.open_transport()?, Revision::NEWEST_LEGACY, attempts).await {
                Err(Error::Unreachable(_)) => return self.probe(Revision::NEWEST, attempts).await,
                outcome => return outcome,
            }
        }
        if verdicts.get(&key) == Some(Era::Legacy) {
            match self.open_session(self.open_transport()?, Revision::NEWEST_LEGACY, attempts).await {
                // What was known of the server is not true any more.
                Err(Error::Unreachable(_)) => verdicts.remove(&key),
                outcome => return outcome,
            }
        }
        let connected = self.probe(Revision::NEWEST, attempts).await?;
        verdicts.put(&key, connected.description.revision.era());
        Ok(connected)
    }

    /// Asks in a modern revision, and goes on as the answer says; if that revision is pinned, only in it.
    async fn probe(
        &self,
        first: Revision,
        attempts: &mut ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        let open = self.open_transport()?;
        let mut asked = first;
        let mut asked_again = false;
        loop {
            let edge = handshake::modern_edge(self.plan, asked);
            let observation = open.discover(self.plan, &edge, attempts).await;
            let verdict = decide_over_http(&observation, asked);
            if let (Some(pin), Some(other)) = (self.plan.pin, verdict.revision())
                && pin != other
            {
                let cause = format!("the server does not speak {pin}: {}", observation.describe());
                return Err(attempts.connect_error(self.url, cause));
            }
            match (verdict, observation) {
                (ProbeDecision::Modern(revision), DiscoverOutcome::Described(result)) => {
                    let edge =
                        if revision == asked { edge } else { handshake::modern_edge(self.plan, revision) };
                    return open.establish_described(self.url, edge, &result, attempts);
                }
                // A server that lists a revision and then refuses it would be asked for ever.
                (ProbeDecision::Retry(revision), _) if !asked_again => {
                    (asked, asked_again) = (revision, true);
                }
                (ProbeDecision::Legacy(offered) | ProbeDecision::LegacyReconnect(offered), _) => {
                    return self.open_session(open, offered, attempts).await;
                }
                (ProbeDecision::NoCommonRevision(why), _) => {
                    return Err(attempts.connect_error(self.url, why));
                }
                (
                    ProbeDecision::Undetermined | ProbeDecision::Retry(_) | ProbeDecision::Modern(_),
                    observation,
                ) => {
                    return Err(self.probe_failed(&observation, attempts));
                }
            }
        }
    }

    /// Opens a session; where nobody knows of such, HTTP+SSE is what is left.
    async fn open_session(
        &self,
        open: OpenedTransport,
        offered: Revision,
        attempts: &mut ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        let what = format!("initialize at {offered}");
        match self.initialize(&*open.transport, offered, what, attempts).await {
            Ok((edge, described)) => Ok(open.establish(edge, described)),
            Err(failure)
                if falls_back_to_sse(&failure) && self.plan.http_transport == HttpTransportKind::Any =>
            {
                self.fall_back_to_sse(offered, &failure, attempts).await
            }
            Err(failure) => Err(self.handshake_failed(failure, attempts)),
        }
    }

    /// Connects over HTTP+SSE, because it was said that this is what the server has.
    async fn connect_sse(&self, attempts: &mut ConnectAttempts) -> Result<EstablishedConnection, Error> {
        let offered = self.plan.pin.unwrap_or(Revision::NEWEST_LEGACY);
        if offered.era() == Era::Modern {
            return Err(Error::Invalid(format!("{offered} is not spoken over HTTP+SSE")));
        }
        match self.open_sse(attempts).await {
            Ok(open) => self.open_sse_session(open, offered, attempts).await,
            Err(loss) => Err(self.handshake_failed(HandshakeError::Transport(loss), attempts)),
        }
    }

    /// Tries HTTP+SSE, after a request for a session has failed.
    async fn fall_back_to_sse(
        &self,
        offered: Revision,
        before: &HandshakeError,
        attempts: &mut ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        match self.open_sse(attempts).await {
            Ok(open) => self.open_sse_session(open, offered, attempts).await,
            // That the last thing which was tried fails says less than what was said before.
            Err(loss) => Err(match loss.kind {
                TransportFailureKind::Unauthorized { .. } => loss.into(),
                _ => attempts.connect_error(self.url, before.describe()),
            }),
        }
    }

    async fn open_sse(&self, attempts: &mut ConnectAttempts) -> Result<OpenedTransport, TransportFailure> {
        let what = "a stream of HTTP+SSE";
        let limit = self.plan.limits.message_bytes;
        let opened = HttpSseChannel::open(self.plan.dialer.clone(), self.url, &self.headers, limit).await;
        let pair = opened
            .inspect_err(|loss| attempts.record(what, HandshakeError::Transport(loss.clone()).describe()))?;
        attempts.record(what, "opened");
        let (sender, receiver) = unsolicited_channel();
        let carrier = Arc::new(ChannelTransport::new(pair, sender, self.plan.channel_limits()));
        Ok(OpenedTransport { transport: carrier, unsolicited: receiver, transport_name: "sse" })
    }

    async fn open_sse_session(
        &self,
        open: OpenedTransport,
        offered: Revision,
        attempts: &mut ConnectAttempts,
    ) -> Result<EstablishedConnection, Error> {
        let what = format!("initialize at {offered} over HTTP+SSE");
        match self.initialize(&*open.transport, offered, what, attempts).await {
            Ok((edge, described)) => Ok(open.establish(edge, described)),
            Err(failure) => Err(self.handshake_failed(failure, attempts)),
        }
    }

    async fn initialize(
        &self,
        carrier: &dyn ClientTransport,
        offered: Revision,
        what: String,
        attempts: &mut ConnectAttempts,
    ) -> Result<(ProtocolEdge, super::ServerDescription), HandshakeError> {
        let outcome = match handshake::initialize(carrier, self.plan, offered).await {
            Ok((_, described)) if self.plan.rejects_revision(described.revision) => {
                carrier.close().await;
                let answered = described.revision;
                Err(HandshakeError::InvalidVersion(format!(
                    "the server does not speak {offered}, but {answered}"
                )))
            }
            outcome => outcome,
        };
        attempts.record(
            what,
            match &outcome {
                Ok((_, described)) => format!("answered with {}", described.revision),
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
            failure => attempts.connect_error(self.url, failure.describe()),
        }
    }

    /// Says that what was seen does not tell how to go on.
    fn probe_failed(&self, observation: &DiscoverOutcome, attempts: &ConnectAttempts) -> Error {
        match observation {
            DiscoverOutcome::Failed(TransportFailure {
                kind: TransportFailureKind::Unauthorized { status, challenge },
                ..
            }) => Error::Unauthorized { status: *status, challenge: challenge.clone() },
            observation => attempts.connect_error(self.url, observation.describe()),
        }
    }
}
