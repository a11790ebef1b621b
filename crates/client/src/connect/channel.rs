//! Connecting over a channel: a program's pipes, or whatever opens channels.

use std::fmt;
use std::sync::Arc;

use trunkline_protocol::{Era, Revision, error_code};
use trunkline_transport::process;
use trunkline_transport::{Command, Opener, Url};

use super::handshake::{self, Failure};
use super::open::Open;
use super::probe::{Observation, Verdict, judge};
use super::{Attempts, Connected, Described, Plan, websocket};
use crate::carrier::{ChannelCarrier, aside};
use crate::edge::Edge;
use crate::error::Error;

/// What opens a channel, as often as needed.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Opener(Opener),
    Command(Command),
    WebSocket(Url),
}

/// Connects, by the rules for channels: a server that does not know the modern era may say so by any error, by silence or
/// by going away, and each of these leads to the handshake, with a deadline of its own.
pub(crate) async fn connect(
    source: &Source,
    plan: &Plan,
    attempts: &mut Attempts,
) -> Result<Connected, Error> {
    let open = source.open(plan, attempts).await?;
    let key = source.verdict_key();
    let known = key.as_ref().and_then(|key| plan.verdicts.get(key));
    match plan.pin {
        Some(pin) if pin.era() == Era::Legacy => shake_hands(source, open, plan, pin, attempts).await,
        Some(pin) => {
            let edge = handshake::modern_edge(plan, pin);
            let observation = open.observe(plan, &edge, attempts).await;
            match (judge(&observation, pin), observation) {
                (Verdict::Modern(revision), Observation::Described(result)) if revision == pin => {
                    open.described(source, edge, &result, attempts)
                }
                (_, observation) => {
                    let cause = format!("the server does not speak {pin}: {}", observation.describe());
                    Err(attempts.unreachable(source, cause))
                }
            }
        }
        None if known == Some(Era::Legacy) => {
            let connected = shake_hands(source, open, plan, Revision::NEWEST_LEGACY, attempts).await;
            if let (Err(_), Some(key)) = (&connected, &key) {
                plan.verdicts.forget(key);
            }
            connected
        }
        None if plan.prefers == Era::Legacy => shake_hands_or_probe(source, open, plan, attempts).await,
        None => {
            let connected = probe(source, open, plan, attempts).await?;
            if let Some(key) = &key {
                plan.verdicts.put(key, connected.described.revision.era());
            }
            Ok(connected)
        }
    }
}

/// Shakes hands with a server that may speak either era, and asks in the modern one if it does not.
async fn shake_hands_or_probe(
    source: &Source,
    open: Open,
    plan: &Plan,
    attempts: &mut Attempts,
) -> Result<Connected, Error> {
    match try_hands(&open, plan, Revision::NEWEST_LEGACY, attempts).await {
        Ok((edge, described)) => Ok(open.connected(edge, described)),
        // It is there, and has said that this is not how it is spoken to.
        Err(Failure::Refused(_) | Failure::Version(_)) => probe(source, open, plan, attempts).await,
        Err(Failure::Silence(_) | Failure::Lost(_)) => {
            drop(open);
            probe(source, source.open(plan, attempts).await?, plan, attempts).await
        }
    }
}

async fn probe(
    source: &Source,
    open: Open,
    plan: &Plan,
    attempts: &mut Attempts,
) -> Result<Connected, Error> {
    let mut asked = Revision::NEWEST;
    let mut asked_again = false;
    let mut waited = false;
    loop {
        let edge = handshake::modern_edge(plan, asked);
        let observation = open.observe(plan, &edge, attempts).await;
        match (judge(&observation, asked), observation) {
            (Verdict::Modern(revision), Observation::Described(result)) => {
                let edge = if revision == asked { edge } else { handshake::modern_edge(plan, revision) };
                return open.described(source, edge, &result, attempts);
            }
            // A server that lists a revision and then refuses it would be asked for ever.
            (Verdict::Again(revision), _) if !asked_again => (asked, asked_again) = (revision, true),
            (Verdict::Again(_) | Verdict::Modern(_) | Verdict::Unknown, observation) => {
                return Err(attempts.unreachable(source, observation.describe()));
            }
            (Verdict::Legacy(offered), Observation::Silence) => {
                match try_hands(&open, plan, offered, attempts).await {
                    Ok((edge, described)) => return Ok(open.connected(edge, described)),
                    // It was only slow to start, and has meanwhile heard what it was asked first.
                    Err(Failure::Refused(refused))
                        if refused.code == error_code::UNSUPPORTED_VERSION
                            && !std::mem::replace(&mut waited, true) =>
                    {
                        if let Verdict::Again(revision) = judge(&Observation::Refused(refused), asked) {
                            asked = revision;
                        }
                    }
                    // Some programs neither answer what they do not know nor anything after it.
                    Err(failure)
                        if !matches!(failure, Failure::Refused(_))
                            && !matches!(source, Source::WebSocket(_)) =>
                    {
                        drop(open);
                        return afresh(source, plan, offered, attempts).await;
                    }
                    Err(failure) => return Err(attempts.unreachable(source, failure.describe())),
                }
            }
            (Verdict::Legacy(offered), _) => return shake_hands(source, open, plan, offered, attempts).await,
            // Over a network there are other reasons for a connection to end than age.
            (Verdict::LegacyAfresh(_), observation) if matches!(source, Source::WebSocket(_)) => {
                return Err(attempts.unreachable(source, observation.describe()));
            }
            (Verdict::LegacyAfresh(offered), _) => {
                open.carrier.close().await;
                return afresh(source, plan, offered, attempts).await;
            }
            (Verdict::Nothing(why), _) => return Err(attempts.unreachable(source, why)),
        }
    }
}

/// Shakes hands over a new connection, on which nothing was said that an old server would not know.
async fn afresh(
    source: &Source,
    plan: &Plan,
    offered: Revision,
    attempts: &mut Attempts,
) -> Result<Connected, Error> {
    let open = source.open(plan, attempts).await?;
    shake_hands(source, open, plan, offered, attempts).await
}

async fn shake_hands(
    source: &Source,
    open: Open,
    plan: &Plan,
    offered: Revision,
    attempts: &mut Attempts,
) -> Result<Connected, Error> {
    match try_hands(&open, plan, offered, attempts).await {
        Ok((_, described)) if plan.refuses(described.revision) => {
            let cause = format!("the server does not speak {offered}, but {}", described.revision);
            Err(attempts.unreachable(source, cause))
        }
        Ok((edge, described)) => Ok(open.connected(edge, described)),
        Err(failure) => Err(attempts.unreachable(source, failure.describe())),
    }
}

/// Opens a session, if the server will, and notes what came of it.
async fn try_hands(
    open: &Open,
    plan: &Plan,
    offered: Revision,
    attempts: &mut Attempts,
) -> Result<(Edge, Described), Failure> {
    let opened = handshake::initialize(&*open.carrier, plan, offered).await;
    let outcome = match &opened {
        Ok((_, described)) => format!("answered with {}", described.revision),
        Err(failure) => failure.describe(),
    };
    attempts.note(format!("initialize at {offered}"), outcome);
    opened
}

impl Source {
    async fn open(&self, plan: &Plan, attempts: &mut Attempts) -> Result<Open, Error> {
        let limits = plan.channel_limits();
        let (sender, receiver) = aside();
        let carrier = match self {
            Self::Opener(opener) => {
                let channel = tokio::time::timeout(plan.limits.connect_within, opener.open()).await;
                let channel = match channel {
                    Ok(Ok(channel)) => channel,
                    Ok(Err(error)) => {
                        attempts.note(format!("open {}", opener.label()), error.to_string());
                        return Err(attempts.unreachable(self, error.to_string()));
                    }
                    Err(_) => {
                        let cause = format!("no connection within {:?}", plan.limits.connect_within);
                        attempts.note(format!("open {}", opener.label()), cause.clone());
                        return Err(attempts.unreachable(self, cause));
                    }
                };
                ChannelCarrier::new(channel, sender, limits)
            }
            Self::WebSocket(url) => {
                let channel = websocket::open(url, plan, attempts).await?;
                ChannelCarrier::new(channel, sender, limits)
            }
            Self::Command(command) => {
                let command = plan.env.iter().fold(command.clone(), |command, (name, value)| {
                    command.env(name.clone(), value.expose().to_owned())
                });
                let options = process::Options {
                    message_bytes: plan.limits.message_bytes,
                    on_line: plan.on_line.clone(),
                    ..process::Options::default()
                };
                let (channel, process) = process::spawn(&command, options).map_err(|error| {
                    attempts.note("start the program", error.to_string());
                    attempts.unreachable(self, error.to_string())
                })?;
                ChannelCarrier::new(channel, sender, limits).with_process(process)
            }
        };
        Ok(Open { carrier: Arc::new(carrier), aside: receiver, transport: self.transport() })
    }

    /// Returns the name under which the era is remembered. A channel within this process is probed in no time, and its
    /// label may be that of many.
    fn verdict_key(&self) -> Option<String> {
        match self {
            Self::Opener(_) => None,
            Self::Command(command) => Some(command.to_string()),
            Self::WebSocket(url) => Some(url.whole()),
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

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opener(opener) => f.write_str(opener.label()),
            Self::Command(command) => command.fmt(f),
            Self::WebSocket(url) => url.fmt(f),
        }
    }
}
