//! One edge for each era: how a request is written, and what an answer means.
//!
//! Nothing behind an edge knows the era. Both write the same [`ClientCall`] and read the same [`ParsedResponse`].

pub(crate) mod legacy;
pub(crate) mod modern;

use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_protocol::{LoggingLevel, Method, RawJson, Refusal, Request, RequestId, Revision};

pub(crate) use self::legacy::LegacyEdge;
pub(crate) use self::modern::ModernEdge;
use crate::call::{AttachedInput, ClientCall};
use crate::client_transport::{InputRecipient, OutgoingMessage, OutgoingRequest};
use crate::error::Error;
use crate::subscribe::ChangeFilter;

/// The edge that fits a server.
#[derive(Debug)]
pub(crate) enum ProtocolEdge {
    Legacy(LegacyEdge),
    Modern(ModernEdge),
}

/// What a response means.
#[derive(Debug)]
pub(crate) enum ParsedResponse {
    /// The request is answered.
    Done(RawResult),
    /// The server wants answers first, and to be asked again with them and with this.
    InputRequired(Vec<(String, InputRequest)>, Option<RawJson>),
}

/// What a request has beside what its caller says.
#[derive(Debug, Default)]
pub(crate) struct RequestExtras<'a> {
    /// The answers that it comes with.
    pub(crate) input: Option<&'a AttachedInput>,
    /// The headers that repeat arguments.
    pub(crate) params: Vec<(String, String)>,
    /// The log level to ask for where the call says none.
    pub(crate) level: Option<LoggingLevel>,
    /// Who answers what the server asks within it.
    pub(crate) recipient: InputRecipient,
}

/// A question, or the refusal that whoever asked gets, with the question if only its capability was not declared.
pub(crate) type InputRequestResult = Result<InputRequest, (Refusal, Option<Box<InputRequest>>)>;

impl ProtocolEdge {
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
    pub(crate) fn check_supported(&self, call: &ClientCall) -> Result<(), Error> {
        let revision = self.revision();
        match call.known_method {
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
    pub(crate) fn write(
        &self,
        id: u64,
        call: &ClientCall,
        extras: RequestExtras<'_>,
    ) -> Result<OutgoingRequest, Error> {
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
        outcome: Result<RawResult, RawJson>,
        capabilities: &ClientCapabilities,
    ) -> Result<ParsedResponse, Error> {
        match self {
            Self::Legacy(_) => LegacyEdge::read(outcome, capabilities),
            Self::Modern(_) => ModernEdge::read(method, outcome, capabilities),
        }
    }

    /// Writes the request that asks for log messages from a level on, unless every request asks for that itself.
    pub(crate) fn set_level_call(&self, level: LoggingLevel) -> Option<ClientCall> {
        match self {
            Self::Legacy(_) => Some(legacy::set_level_call(level)),
            Self::Modern(_) => None,
        }
    }

    /// Writes the request to be told of changes of a resource, if that is asked for each by itself.
    pub(crate) fn subscribe_call(&self, uri: &str) -> Option<ClientCall> {
        match self {
            Self::Legacy(_) => Some(legacy::resource_call(Method::ResourcesSubscribe, uri)),
            Self::Modern(_) => None,
        }
    }

    /// Writes the request to be no longer told of changes of a resource.
    pub(crate) fn unsubscribe_call(&self, uri: &str) -> Option<ClientCall> {
        match self {
            Self::Legacy(_) => Some(legacy::resource_call(Method::ResourcesUnsubscribe, uri)),
            Self::Modern(_) => None,
        }
    }

    /// Writes the standing request within which changes are told, if they are told so.
    pub(crate) fn listen_call(&self, watch: &ChangeFilter) -> Option<ClientCall> {
        match self {
            Self::Legacy(_) => None,
            Self::Modern(_) => Some(modern::listen_call(watch)),
        }
    }

    /// Writes the notification that the roots have changed, if there is one.
    pub(crate) fn roots_changed(&self) -> Option<OutgoingMessage> {
        match self {
            Self::Legacy(legacy) => Some(legacy.roots_changed()),
            Self::Modern(_) => None,
        }
    }

    /// Reads a question that the server asks by a request of its own; a refusal is for the server.
    pub(crate) fn parse_request(
        &self,
        request: Request,
        capabilities: &ClientCapabilities,
    ) -> InputRequestResult {
        match self {
            Self::Legacy(_) => legacy::parse_request(request, capabilities),
            Self::Modern(modern) => Err((modern.refuse_request(&request), None)),
        }
    }

    /// Writes the answer to a question that the server asked by a request of its own.
    pub(crate) fn write_response(
        &self,
        id: &RequestId,
        answer: Result<&InputResponse, &Refusal>,
    ) -> OutgoingMessage {
        let posted = legacy::write_response(self.revision(), id, answer);
        OutgoingMessage { is_for_channels: matches!(self, Self::Modern(_)), ..posted }
    }
}
