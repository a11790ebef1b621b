//! The messages between processes, as JSON behind a version.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use trunkline_protocol::{RawJson, RequestId};
use trunkline_session::{Principal, ProcessId, SessionId, StreamId};
use trunkline_transport::Secret;

use crate::access_grant::AccessGrant;
use crate::change::ServerChange;
use crate::edge::modern::RequestOrigin;
use crate::env::Env;

/// The version that this build writes, and the only one that it reads. A process of another version drops the message, as if
/// its sender had ended.
const VERSION: u8 = 1;

/// A message between processes. Ids are in their written forms.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum BusMessage {
    /// A client's response to a request of a call that runs on the receiver.
    Response { session: String, principal: SentPrincipal, response: String },
    /// A client's notification about a call, which any process may run.
    Cancelled { session: String, principal: SentPrincipal, request: String },
    /// A client's notification about its session.
    RootsChanged { session: String, principal: SentPrincipal, is_initialized: bool },
    /// A session has ended.
    SessionEnded { session: String },
    /// The record of a session has changed.
    RecordChanged { session: String },
    /// The application has published a change.
    Changed { change: PublishedChange },
    /// The sender serves a stream that a call of the receiver writes, and wants to know when it grows.
    Follow { session: String, stream: u64, from: String },
    /// A followed stream has grown, or its call has ended.
    Grown { session: String, stream: u64, is_over: bool },
    /// The sender sends the messages of a session that belong to no call from now on, on this stream among others.
    TakeOver { session: String, stream: u64, from: String },
    /// What the receiver is to send in a session in place of the sender.
    HandOver { session: String, changes: Vec<PublishedChange>, messages: Vec<String>, is_reply: bool },
    /// A client's retry of a call that is suspended at the receiver.
    Relay { relay: u64, from: String, request: String, origin: Box<SentOrigin> },
    /// What a relayed call sends to its client.
    Relayed { relay: u64, event: RelayedEvent },
    /// The client of a relayed call has taken messages.
    RelayRead { relay: u64, from: String, messages: u32 },
    /// The client of a relayed call is gone.
    RelayCancelled { relay: u64, from: String },
}

/// What a relayed call sends to its client.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum RelayedEvent {
    Message(String),
    Response {
        message: String,
        status: u16,
    },
    /// The call cannot be answered, for this reason.
    Failed(String),
    NoResponse,
}

impl BusMessage {
    /// The kinds of messages, as labels of metrics.
    pub(crate) const KINDS: [&'static str; 14] = [
        "response",
        "cancelled",
        "roots_changed",
        "session_ended",
        "record_changed",
        "changed",
        "follow",
        "grown",
        "take_over",
        "hand_over",
        "relay",
        "relayed",
        "relay_read",
        "relay_cancelled",
    ];

    /// Returns the place of its kind in [`BusMessage::KINDS`].
    pub(crate) const fn kind(&self) -> usize {
        match self {
            Self::Response { .. } => 0,
            Self::Cancelled { .. } => 1,
            Self::RootsChanged { .. } => 2,
            Self::SessionEnded { .. } => 3,
            Self::RecordChanged { .. } => 4,
            Self::Changed { .. } => 5,
            Self::Follow { .. } => 6,
            Self::Grown { .. } => 7,
            Self::TakeOver { .. } => 8,
            Self::HandOver { .. } => 9,
            Self::Relay { .. } => 10,
            Self::Relayed { .. } => 11,
            Self::RelayRead { .. } => 12,
            Self::RelayCancelled { .. } => 13,
        }
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut bytes = vec![VERSION];
        // Writing strings and numbers to memory cannot fail; an empty message would be dropped by its receiver.
        let _ = serde_json::to_writer(&mut bytes, self);
        Bytes::from(bytes)
    }

    /// Reads a message; `None` if a process of another version sent it.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (&VERSION, json) => serde_json::from_slice(json).ok(),
            _ => None,
        }
    }
}

/// A principal as it is sent.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum SentPrincipal {
    Anonymous,
    Process,
    Named(String),
}

impl From<&Principal> for SentPrincipal {
    fn from(principal: &Principal) -> Self {
        match principal {
            Principal::Anonymous => Self::Anonymous,
            Principal::Process => Self::Process,
            Principal::Named(name) => Self::Named(name.to_string()),
        }
    }
}

impl SentPrincipal {
    pub(crate) fn to_principal(&self) -> Principal {
        match self {
            Self::Anonymous => Principal::Anonymous,
            Self::Process => Principal::Process,
            Self::Named(name) => Principal::Named(name.as_str().into()),
        }
    }
}

/// A change as it is sent.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum PublishedChange {
    Tools,
    Prompts,
    Resources,
    ResourceUpdated(String),
}

impl From<&ServerChange> for PublishedChange {
    fn from(change: &ServerChange) -> Self {
        match change {
            ServerChange::Tools => Self::Tools,
            ServerChange::Prompts => Self::Prompts,
            ServerChange::Resources => Self::Resources,
            ServerChange::ResourceUpdated(uri) => Self::ResourceUpdated(uri.to_string()),
        }
    }
}

impl From<PublishedChange> for ServerChange {
    fn from(change: PublishedChange) -> Self {
        match change {
            PublishedChange::Tools => Self::Tools,
            PublishedChange::Prompts => Self::Prompts,
            PublishedChange::Resources => Self::Resources,
            PublishedChange::ResourceUpdated(uri) => Self::ResourceUpdated(uri.into()),
        }
    }
}

/// The origin of a relayed request. What cannot be sent, the signal that a credential was revoked, stays with the process
/// that received the request: it ends the relay.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct SentOrigin {
    principal: SentPrincipal,
    connection: Option<String>,
    remote_address: Option<IpAddr>,
    env: Vec<(String, String)>,
    grant: Option<SentGrant>,
}

#[derive(Clone, Serialize, Deserialize)]
struct SentGrant {
    scopes: Vec<String>,
    client_id: Option<String>,
    issuer: Option<String>,
    claims: Option<String>,
    access_token: Option<String>,
    is_key_bound: bool,
    /// In milliseconds since 1970.
    expires_at: Option<u64>,
}

impl From<&RequestOrigin> for SentOrigin {
    fn from(origin: &RequestOrigin) -> Self {
        let variables = origin.env.variables();
        Self {
            principal: SentPrincipal::from(&origin.principal),
            connection: origin.connection.map(|connection| connection.to_string()),
            remote_address: origin.remote_address,
            env: variables.map(|(name, value)| (name.to_string(), value.expose().to_owned())).collect(),
            grant: origin.grant.as_deref().map(SentGrant::from),
        }
    }
}

impl SentOrigin {
    pub(crate) fn into_origin(self) -> RequestOrigin {
        let variables = self.env.into_iter().map(|(name, value)| (name.into(), Secret::new(value))).collect();
        RequestOrigin {
            principal: self.principal.to_principal(),
            connection: self.connection.and_then(|id| SessionId::parse(id.as_bytes())),
            remote_address: self.remote_address,
            transport: "http",
            env: Env::new(variables),
            grant: self.grant.map(|grant| Arc::new(grant.into_grant())),
        }
    }
}

impl From<&AccessGrant> for SentGrant {
    fn from(grant: &AccessGrant) -> Self {
        let text = |value: &Option<Box<str>>| value.as_deref().map(str::to_owned);
        let milliseconds = |at: SystemTime| {
            u64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
        };
        Self {
            scopes: grant.scopes.iter().map(ToString::to_string).collect(),
            client_id: text(&grant.client_id),
            issuer: text(&grant.issuer),
            claims: grant.claims.as_ref().map(|claims| claims.as_str().to_owned()),
            access_token: grant.access_token.as_ref().map(|token| token.expose().to_owned()),
            is_key_bound: grant.is_key_bound,
            expires_at: grant.expires_at.map(milliseconds),
        }
    }
}

impl SentGrant {
    fn into_grant(self) -> AccessGrant {
        let expires = |milliseconds| UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds));
        AccessGrant {
            scopes: self.scopes.into_iter().map(Into::into).collect(),
            client_id: self.client_id.map(Into::into),
            issuer: self.issuer.map(Into::into),
            claims: self.claims.and_then(|claims| RawJson::parse(claims).ok()),
            access_token: self.access_token.map(Secret::new),
            is_key_bound: self.is_key_bound,
            expires_at: self.expires_at.and_then(expires),
            revocation: None,
            recheck: None,
        }
    }
}

/// The session and the stream of a message.
pub(crate) fn stream_key(session: &str, stream: u64) -> Option<(SessionId, StreamId)> {
    Some((SessionId::parse(session.as_bytes())?, StreamId(stream)))
}

/// Returns the process that sent a request to the client, by the id of the request.
pub(crate) fn process_of_request(id: &RequestId) -> Option<ProcessId> {
    let raw = id.to_raw();
    let text = raw.as_text()?;
    let (process, _) = text.strip_prefix("trunkline-")?.split_once('-')?;
    ProcessId::parse(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_read_from_ids_of_shared_sessions_only() {
        for (id, expected) in [
            ("trunkline-00000000000000ff-1a", Some(255)),
            ("trunkline-1a", None),
            ("trunkline-ff-1a", None),
            ("other-00000000000000ff-1a", None),
        ] {
            let process = process_of_request(&RequestId::from_text(id));
            assert_eq!(process.map(ProcessId::bits), expected, "{id}");
        }
        assert_eq!(process_of_request(&RequestId::from_number(7)), None);
    }

    #[test]
    fn origin_of_a_relayed_request_keeps_its_grant_and_variables() {
        let grant = AccessGrant::new()
            .with_scopes(["a", "b"])
            .with_issuer("https://issuer")
            .with_access_token(Secret::new("token"))
            .expiring_at(UNIX_EPOCH + Duration::from_millis(1234));
        let origin = RequestOrigin {
            principal: Principal::Named("ann".into()),
            connection: Some(SessionId::random()),
            remote_address: Some([127, 0, 0, 1].into()),
            transport: "http",
            env: Env::new(vec![("KEY".into(), Secret::new("value"))]),
            grant: Some(Arc::new(grant)),
        };
        let message = BusMessage::Relay {
            relay: 1,
            from: String::new(),
            request: "{}".to_owned(),
            origin: Box::new(SentOrigin::from(&origin)),
        };
        let Some(BusMessage::Relay { origin: sent, .. }) = BusMessage::from_bytes(&message.to_bytes()) else {
            panic!("it is read back");
        };
        let read = sent.into_origin();
        assert_eq!((&read.principal, read.connection), (&origin.principal, origin.connection));
        assert_eq!(read.remote_address, origin.remote_address);
        assert_eq!(read.env.get("KEY").map(|value| value.expose().to_owned()), Some("value".to_owned()));
        let (read, sent) = (read.grant.unwrap(), origin.grant.unwrap());
        assert_eq!(
            (&read.scopes, &read.issuer, read.expires_at),
            (&sent.scopes, &sent.issuer, sent.expires_at)
        );
        assert_eq!(read.access_token.as_ref().map(Secret::expose), Some("token"));
        let mut newer = message.to_bytes().to_vec();
        newer[0] = VERSION + 1;
        assert!(BusMessage::from_bytes(&newer).is_none(), "another version");
    }
}
