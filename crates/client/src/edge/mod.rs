//! One edge for each era: how a request is written, and what an answer means.
//!
//! Nothing behind an edge knows the era. Both write the same [`Call`] and read the same [`Settled`].

pub(crate) mod legacy;
pub(crate) mod modern;

use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::{Answer, ClientCapabilities, Question};
use trunkline_protocol::{Id, Level, Method, Raw, Refusal, Request, Revision};

pub(crate) use self::legacy::Legacy;
pub(crate) use self::modern::Modern;
use crate::call::{Brought, Call};
use crate::carrier::{Answerer, Outgoing, Posted};
use crate::error::Error;
use crate::subscribe::Watch;

/// The edge that fits a server.
#[derive(Debug)]
pub(crate) enum Edge {
    Legacy(Legacy),
    Modern(Modern),
}

/// What a response means.
#[derive(Debug)]
pub(crate) enum Settled {
    /// The request is answered.
    Done(RawResult),
    /// The server wants answers first, and to be asked again with them and with this.
    Ask(Vec<(String, Question)>, Option<Raw>),
}

/// What a request has beside what its caller says.
#[derive(Debug, Default)]
pub(crate) struct Extras<'a> {
    /// The answers that it comes with.
    pub(crate) brought: Option<&'a Brought>,
    /// The headers that repeat arguments.
    pub(crate) params: Vec<(String, String)>,
    /// The log level to ask for where the call says none.
    pub(crate) level: Option<Level>,
    /// Who answers what the server asks within it.
    pub(crate) answerer: Answerer,
}

/// A question, or the refusal that whoever asked gets, with the question if only its capability was not declared.
pub(crate) type Asked = Result<Question, (Refusal, Option<Box<Question>>)>;

impl Edge {
    /// Returns the revision that is spoken.
    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Legacy(legacy) => legacy.revision(),
            Self::Modern(modern) => modern.revision(),
        }
    }

    /// Checks that the era has what is asked for.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it is a method of the other era.
    pub(crate) fn check(&self, call: &Call) -> Result<(), Error> {
        let revision = self.revision();
        match call.known {
            Some(method) if !method.exists_in(revision.era()) => Err(Error::Unsupported(format!(
                "the server speaks revision {revision}, which has no `{}`",
                call.method
            ))),
            _ => Ok(()),
        }
    }

    /// Reports whether headers repeat arguments of tools, so that a tool which does that wrongly cannot be called.
    pub(crate) fn mirrors_arguments(&self) -> bool {
        matches!(self, Self::Modern(_))
    }

    /// Writes a request.
    ///
    /// # Errors
    /// An answer cannot be said, or was refused where that ends the call.
    pub(crate) fn write(&self, id: u64, call: &Call, extras: Extras<'_>) -> Result<Outgoing, Error> {
        match self {
            Self::Legacy(legacy) => legacy.write(id, call, &extras),
            Self::Modern(modern) => modern.write(id, call, extras),
        }
    }

    /// Reads what a response means to a client of these capabilities.
    ///
    /// # Errors
    /// The server refused, or what it says makes no sense.
    pub(crate) fn read(
        &self,
        method: Option<Method>,
        outcome: Result<RawResult, Raw>,
        capabilities: &ClientCapabilities,
    ) -> Result<Settled, Error> {
        match self {
            Self::Legacy(_) => Legacy::read(outcome, capabilities),
            Self::Modern(_) => Modern::read(method, outcome, capabilities),
        }
    }

    /// Writes the request that asks for log messages from a level on, unless every request asks for that itself.
    pub(crate) fn set_level(&self, level: Level) -> Option<Call> {
        match self {
            Self::Legacy(_) => Some(legacy::set_level(level)),
            Self::Modern(_) => None,
        }
    }

    /// Writes the request to be told of changes of a resource, if that is asked for each by itself.
    pub(crate) fn watch(&self, uri: &str) -> Option<Call> {
        match self {
            Self::Legacy(_) => Some(legacy::about_resource(Method::ResourcesSubscribe, uri)),
            Self::Modern(_) => None,
        }
    }

    /// Writes the request to be no longer told of changes of a resource.
    pub(crate) fn unwatch(&self, uri: &str) -> Option<Call> {
        match self {
            Self::Legacy(_) => Some(legacy::about_resource(Method::ResourcesUnsubscribe, uri)),
            Self::Modern(_) => None,
        }
    }

    /// Writes the standing request within which changes are told, if they are told so.
    pub(crate) fn listen(&self, watch: &Watch) -> Option<Call> {
        match self {
            Self::Legacy(_) => None,
            Self::Modern(_) => Some(modern::listen(watch)),
        }
    }

    /// Writes the notification that the roots have changed, if there is one.
    pub(crate) fn roots_changed(&self) -> Option<Posted> {
        match self {
            Self::Legacy(legacy) => Some(legacy.roots_changed()),
            Self::Modern(_) => None,
        }
    }

    /// Reads a question that the server asks by a request of its own; a refusal is for the server.
    pub(crate) fn question(&self, request: Request, capabilities: &ClientCapabilities) -> Asked {
        match self {
            Self::Legacy(_) => legacy::question(request, capabilities),
            Self::Modern(modern) => Err((modern.refuse_request(&request), None)),
        }
    }

    /// Writes the answer to a question that the server asked by a request of its own.
    pub(crate) fn answer(&self, id: &Id, answer: Result<&Answer, &Refusal>) -> Posted {
        let posted = legacy::answer(self.revision(), id, answer);
        Posted { is_for_channels: matches!(self, Self::Modern(_)), ..posted }
    }
}
