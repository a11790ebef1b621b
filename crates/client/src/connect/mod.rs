//! How a server is reached, and how its era is found out.
//!
//! What an observation means is a pure function ([`probe`]), so that the rules are a table that tests can read. The rest
//! of this folder makes the observations.

mod attempt;
mod channel;
mod eras;
mod handshake;
mod http;
mod open;
mod probe;
mod verdicts;
mod websocket;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_protocol::model::{ClientCapabilities, Implementation, ServerCapabilities};
use trunkline_protocol::{Era, Members, Revision};
use trunkline_transport::dial::Dialer;
use trunkline_transport::process::Observer;
use trunkline_transport::{Secret, Target};

pub use self::attempt::Attempt;
pub(crate) use self::attempt::Attempts;
pub use self::eras::SpokenEras;
use self::eras::{Wanted, learned};
pub use self::verdicts::Verdicts;
use crate::carrier::{AsideReceiver, Carrier, ChannelLimits, Headers, HttpLimits};
use crate::edge::Edge;
use crate::error::{Error, Unreachable};
use crate::limits::Limits;

/// Which transport is spoken to an `http` address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OverHttp {
    /// Whichever the server turns out to have; HTTP+SSE is tried last.
    #[default]
    Any,
    /// Streamable HTTP alone.
    Streamable,
    /// HTTP+SSE alone, without trying anything else first.
    Sse,
}

/// What a connection is to be made with.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) identity: Implementation,
    pub(crate) capabilities: ClientCapabilities,
    /// The revision that must be spoken, or from which on down an era is tried.
    pub(crate) pin: Option<Revision>,
    /// Whether any older revision of the same era will do.
    pub(crate) whole_era: bool,
    /// The era that is tried first where none is pinned.
    pub(crate) prefers: Era,
    pub(crate) over_http: OverHttp,
    pub(crate) limits: Limits,
    /// HTTP headers that go with every request.
    pub(crate) headers: Vec<(String, Secret)>,
    /// Variables for a program that is started.
    pub(crate) env: Vec<(String, Secret)>,
    /// Who is shown what such a program writes beside the protocol.
    pub(crate) on_line: Option<Observer>,
    pub(crate) verdicts: Verdicts,
    /// Opens connections to addresses.
    pub(crate) dialer: Dialer,
    /// What goes into `_meta` of every request for a list.
    pub(crate) list_meta: Members,
    pub(crate) ids: Ids,
}

impl Plan {
    /// Reports whether a server answered with a revision that was not asked for.
    pub(crate) fn refuses(&self, answered: Revision) -> bool {
        self.pin.is_some_and(|pin| pin != answered && !(self.whole_era && pin.era() == answered.era()))
    }

    /// Returns what a connection tells about the eras of a server.
    pub(crate) fn learned(&self, described: &Described) -> SpokenEras {
        let wanted = match self.pin {
            Some(_) => Wanted::Pinned,
            None => Wanted::Preferred(self.prefers),
        };
        learned(wanted, described.revision.era(), described.lists_legacy)
    }

    /// Returns the bounds of a channel.
    pub(crate) fn channel_limits(&self) -> ChannelLimits {
        let Limits { bounds, in_flight, queued_bytes, noise, .. } = self.limits;
        ChannelLimits { bounds, in_flight, queued_bytes: queued_bytes.max(1), noise }
    }

    /// Returns the bounds of what comes over HTTP.
    pub(crate) fn http_limits(&self) -> HttpLimits {
        let Limits { bounds, message_bytes, in_flight, noise, .. } = self.limits;
        HttpLimits { bounds, message_bytes, in_flight, noise }
    }

    /// Returns the headers that go with every request.
    ///
    /// # Errors
    /// One of them is none, or is not the program's to set.
    pub(crate) fn headers(&self) -> Result<Headers, Error> {
        let mut headers = Headers::default();
        for (name, value) in &self.headers {
            headers.add(name, value).map_err(|error| Error::Invalid(error.to_string()))?;
        }
        Ok(headers)
    }
}

/// The ids of one client's requests, which are never used twice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids(Arc<AtomicU64>);

impl Ids {
    pub(crate) fn next(&self) -> u64 {
        // Nothing is ordered by it: the number only has to be fresh.
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A connection over which the era is known and requests can be made.
pub(crate) struct Connected {
    pub(crate) carrier: Arc<dyn Carrier>,
    pub(crate) edge: Edge,
    pub(crate) described: Described,
    pub(crate) aside: AsideReceiver,
    /// What kind of transport it is, for people.
    pub(crate) transport: &'static str,
}

/// What a server says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) revision: Revision,
    pub(crate) capabilities: ServerCapabilities,
    pub(crate) identity: Option<Implementation>,
    pub(crate) instructions: Option<String>,
    /// Whether it listed revisions that `initialize` negotiates, although it was asked in another way.
    pub(crate) lists_legacy: bool,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected")
            .field("described", &self.described)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// Reaches a target and finds out how to talk to it.
pub(crate) async fn connect(
    target: Target,
    plan: &Plan,
    attempts: &mut Attempts,
) -> Result<Connected, Error> {
    match target {
        Target::Channel(opener) => channel::connect(&channel::Source::Opener(opener), plan, attempts).await,
        Target::Command(command) => {
            channel::connect(&channel::Source::Command(command), plan, attempts).await
        }
        Target::Url(url) if url.scheme().is_websocket() => {
            channel::connect(&channel::Source::WebSocket(url), plan, attempts).await
        }
        Target::Url(url) => http::connect(&url, plan, attempts).await,
        Target::Name { name, .. } => Err(Error::Invalid(format!(
            "`{name}` is neither an address nor a command line; if it is the name of a program, put `./` or its path \
             before it; a name in a configuration is looked up with the feature `config`"
        ))),
        Target::Unreadable(error) => Err(Error::Invalid(error.to_string())),
        other => Err(Error::Unsupported(format!("cannot connect to {other}"))),
    }
}

/// Opens a session over a carrier that had one before.
///
/// # Errors
/// The server does not open another.
pub(crate) async fn initialize(
    carrier: &dyn Carrier,
    plan: &Plan,
    revision: Revision,
) -> Result<(Edge, Described), Error> {
    handshake::initialize(carrier, plan, revision).await.map_err(|failure| match failure {
        handshake::Failure::Silence(after) => Error::TimedOut { after },
        handshake::Failure::Lost(loss) => loss.into(),
        handshake::Failure::Refused(refused) => Error::Refused(refused),
        handshake::Failure::Version(problem) => Error::Malformed(problem),
    })
}

impl Attempts {
    /// Says that everything failed.
    pub(crate) fn unreachable(&self, target: impl fmt::Display, cause: impl Into<String>) -> Error {
        Error::Unreachable(Box::new(Unreachable {
            target: target.to_string(),
            attempts: self.list().to_vec(),
            cause: cause.into(),
        }))
    }
}
