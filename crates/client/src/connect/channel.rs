//! Connecting over a channel: the pipes of a process, a WebSocket, or a custom opener.

use std::fmt;
use std::sync::Arc;

use trunkline_protocol::{Era, Revision};
use trunkline_transport::process;
use trunkline_transport::{ChannelOpener, Command, Url};

use super::attempt::START_PROGRAM;
use super::channel_probe::probe;
use super::handshake::{self, HandshakeError};
use super::opened_transport::OpenedTransport;
use super::probe::{DiscoverOutcome, ProbeDecision, decide_over_channel};
use super::{ConnectAttempts, ConnectPlan, EstablishedConnection, ServerDescription, websocket};
use crate::client_transport::FailureCause;
use crate::client_transport::{ChannelTransport, unsolicited_channel};
use crate::edge::ProtocolEdge;
use crate::error::Error;
use crate::limits::ClientLimits;

/// Opens a channel, as often as needed.
#[derive(Clone, Debug)]
pub(crate) enum ChannelSource {
    Opener(ChannelOpener),
    Command(Command),
    WebSocket(Url),
}

impl ChannelSource {
    /// Reports whether the channel is a network connection, which can break without a reason in the server.
    pub(super) fn is_network(&self) -> bool {
        matches!(self, Self::WebSocket(_))
    }
}

/// Connects, by the rules for channels: a server that does not know the modern era may respond with any error, stay
/// silent or close the channel, and each of these leads to the legacy handshake, with a timeout of its own.
pub(crate) async fn connect(
    source: &ChannelSource,
    plan: &ConnectPlan,
    attempts: &mut ConnectAttempts,
) -> Result<EstablishedConnection, Error> {
    let open = source.open(plan, attempts).await?;
    let key = source.era_cache_key();
    let known = key.as_ref().and_then(|key| plan.era_cache.get(key));
    match plan.pin {
        Some(pin) if pin.era() == Era::Legacy => open_session(source, open, plan, pin, attempts).await,
        Some(pin) => {
            let edge = handshake::modern_edge(plan, pin);
            let outcome = open.discover(plan, &edge, plan.limits.handshake_timeout, attempts).await;
            match (decide_over_channel(&outcome, pin), outcome) {
                (ProbeDecision::Modern(revision), DiscoverOutcome::Described(result)) if revision == pin => {
                    open.establish_described(source, edge, &result, attempts)
                }
                (_, outcome) => {
                    let cause = format!("the server does not speak {pin}: {}", outcome.describe());
                    Err(attempts.connect_error(source, open.with_process_output(cause.into())))
                }
            }
        }
        None if known == Some(Era::Legacy) => {
            let connected = open_session(source, open, plan, Revision::NEWEST_LEGACY, attempts).await;
            if let (Err(_), Some(key)) = (&connected, &key) {
                plan.era_cache.remove(key);
            }
            connected
        }
        None if plan.prefers == Era::Legacy => initialize_or_probe(source, open, plan, attempts).await,
        None => {
            // A server that is known to be modern is only slow to start.
            let delay = match known {
                Some(Era::Modern) => plan.limits.probe_timeout,
                Some(Era::Legacy) | None => plan.limits.initialize_delay,
            };
            let connected = probe(source, open, plan, delay, attempts).await?;
            if let Some(key) = &key {
                plan.era_cache.put(key, connected.description.revision.era());
            }
            Ok(connected)
        }
    }
}

/// Tries the legacy handshake with a server that may support either era, and probes for the modern one if it fails.
async fn initialize_or_probe(
    source: &ChannelSource,
    open: OpenedTransport,
    plan: &ConnectPlan,
    attempts: &mut ConnectAttempts,
) -> Result<EstablishedConnection, Error> {
    match try_initialize(&open, plan, Revision::NEWEST_LEGACY, attempts).await {
        Ok((edge, description)) => Ok(open.establish(edge, description)),
        // The server runs, and has rejected the handshake.
        Err(HandshakeError::ErrorResponse(_) | HandshakeError::InvalidVersion(_)) => {
            probe(source, open, plan, plan.limits.initialize_delay, attempts).await
        }
        Err(HandshakeError::TimedOut(_) | HandshakeError::Transport(_)) => {
            drop(open);
            let open = source.open(plan, attempts).await?;
            probe(source, open, plan, plan.limits.initialize_delay, attempts).await
        }
    }
}

/// Runs the handshake over a new channel after a server that never answered. It has started once, so that it is given
/// the time of a probe and not that of a first start.
pub(super) async fn initialize_after_silence(
    source: &ChannelSource,
    plan: &ConnectPlan,
    attempts: &mut ConnectAttempts,
) -> Result<EstablishedConnection, Error> {
    let limits = ClientLimits {
        handshake_timeout: plan.limits.probe_timeout.min(plan.limits.handshake_timeout),
        ..plan.limits.clone()
    };
    let plan = ConnectPlan { limits, ..plan.clone() };
    initialize_on_new_channel(source, &plan, Revision::NEWEST_LEGACY, attempts).await
}

/// Runs the handshake over a new channel, on which a legacy server has seen no unknown request.
pub(super) async fn initialize_on_new_channel(
    source: &ChannelSource,
    plan: &ConnectPlan,
    offered: Revision,
    attempts: &mut ConnectAttempts,
) -> Result<EstablishedConnection, Error> {
    let open = source.open(plan, attempts).await?;
    open_session(source, open, plan, offered, attempts).await
}

pub(super) async fn open_session(
    source: &ChannelSource,
    open: OpenedTransport,
    plan: &ConnectPlan,
    offered: Revision,
    attempts: &mut ConnectAttempts,
) -> Result<EstablishedConnection, Error> {
    match try_initialize(&open, plan, offered, attempts).await {
        Ok((_, description)) if plan.rejects_revision(description.revision) => {
            let cause = format!("the server does not speak {offered}, but {}", description.revision);
            Err(attempts.connect_error(source, cause))
        }
        Ok((edge, description)) => Ok(open.establish(edge, description)),
        Err(failure) => Err(attempts.connect_error(source, open.with_process_output(failure.cause()))),
    }
}

/// Tries to open a session, and records the attempt.
async fn try_initialize(
    open: &OpenedTransport,
    plan: &ConnectPlan,
    offered: Revision,
    attempts: &mut ConnectAttempts,
) -> Result<(ProtocolEdge, ServerDescription), HandshakeError> {
    let opened = handshake::initialize(&*open.transport, plan, offered).await;
    attempts.record(format!("initialize at {offered}"), handshake::describe(&opened));
    opened
}

impl ChannelSource {
    pub(super) async fn open(
        &self,
        plan: &ConnectPlan,
        attempts: &mut ConnectAttempts,
    ) -> Result<OpenedTransport, Error> {
        let limits = plan.channel_limits();
        let (sender, receiver) = unsolicited_channel(plan.on_dropped.clone());
        let transport = match self {
            Self::Opener(opener) => {
                let channel = tokio::time::timeout(plan.limits.handshake_timeout, opener.open()).await;
                let channel = match channel {
                    Ok(Ok(channel)) => channel,
                    Ok(Err(error)) => {
                        attempts.record(format!("open {}", opener.label()), error.to_string());
                        return Err(attempts.connect_error(self, FailureCause::from_error(error)));
                    }
                    Err(_) => {
                        let cause = format!("no connection within {:?}", plan.limits.handshake_timeout);
                        attempts.record(format!("open {}", opener.label()), cause.clone());
                        return Err(attempts.connect_error(self, cause));
                    }
                };
                ChannelTransport::new(channel, sender, limits)
            }
            Self::WebSocket(url) => {
                let channel = websocket::open(url, plan, attempts).await?;
                ChannelTransport::new(channel, sender, limits)
            }
            Self::Command(command) => {
                let command = plan.env.iter().fold(command.clone(), |command, (name, value)| {
                    command.env(name.clone(), value.expose().to_owned())
                });
                let options = process::ProcessOptions {
                    message_bytes: plan.limits.message_bytes,
                    on_line: plan.on_line.clone(),
                    ..process::ProcessOptions::default()
                };
                let (channel, process) = process::spawn(&command, options).map_err(|error| {
                    attempts.record(START_PROGRAM, error.to_string());
                    attempts.connect_error(self, FailureCause::from_error(error))
                })?;
                ChannelTransport::new(channel, sender, limits).with_process(process)
            }
        };
        Ok(OpenedTransport {
            transport: Arc::new(transport),
            unsolicited: receiver,
            transport_name: self.transport(),
        })
    }

    /// Returns the key in the era cache. A channel within this process has none: probing it is cheap, and its label
    /// need not be unique.
    fn era_cache_key(&self) -> Option<String> {
        match self {
            Self::Opener(_) => None,
            Self::Command(command) => Some(command.to_string()),
            Self::WebSocket(url) => Some(url.to_full_string()),
        }
    }

    fn transport(&self) -> &'static str {
        match self {
            Self::Opener(_) => "channel",
            Self::Command(_) => "stdio",
            Self::WebSocket(_) => "websocket",
        }
    }
}

impl fmt::Display for ChannelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opener(opener) => f.write_str(opener.label()),
            Self::Command(command) => command.fmt(f),
            Self::WebSocket(url) => url.fmt(f),
        }
    }
}
