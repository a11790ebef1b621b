//! One edge per era: how a request is encoded, and what a response means.
//!
//! Code behind an edge does not depend on the era. Both edges encode the same [`ClientCall`] and return the same
//! [`StepOutcome`](crate::StepOutcome)s.
//!
//! See [Versioning, Terminology](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning#terminology).

pub(crate) mod legacy;
pub(crate) mod modern;

use bytes::Bytes;
use trunkline_protocol::codec::RawResult;
use trunkline_protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_protocol::{LoggingLevel, Method, Refusal, Request, RequestId, Revision};

pub(crate) use self::legacy::LegacyEdge;
pub(crate) use self::modern::ModernEdge;
use crate::call::{AttachedInput, ClientCall};
use crate::client_transport::{InputRecipient, OutgoingMessage, OutgoingRequest};
use crate::error::{Error, ErrorResponse};
use crate::subscribe::ChangeFilter;

/// The edge for a server's era.
#[derive(Debug)]
pub(crate) enum ProtocolEdge {
    Legacy(LegacyEdge),
    Modern(ModernEdge),
}

/// The input that a server requires before a call is repeated: the requests by their keys, and the `requestState` that
/// the repeated call carries, or no bytes.
pub(crate) type RequiredInput = (Vec<(String, InputRequest)>, Bytes);

/// Parts of a request that do not come from its caller.
#[derive(Debug, Default)]
pub(crate) struct RequestExtras<'a> {
    /// The input responses to send with it.
    pub(crate) input: Option<&'a AttachedInput>,
    /// The `Mcp-Param-*` headers, which mirror arguments.
    pub(crate) params: Vec<(String, String)>,
    /// The log level, unless the call sets one.
    pub(crate) level: Option<LoggingLevel>,
    /// The recipient of input requests within it.
    pub(crate) recipient: InputRecipient,
}

/// An input request, or the refusal for the server, with the input request if only its capability was not declared.
pub(crate) type InputRequestResult = Result<InputRequest, (Refusal, Option<Box<InputRequest>>)>;

impl ProtocolEdge {
    /// Returns the protocol revision.
    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Legacy(legacy) => legacy.revision(),
            Self::Modern(modern) => modern.revision(),
        }
    }

    /// Checks that the era has the method.
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

    /// Reports whether headers mirror tool arguments, so that a tool with an invalid mirroring cannot be called.
    pub(crate) fn mirrors_arguments(&self) -> bool {
        matches!(self, Self::Modern(_))
    }

    /// Encodes a request.
    ///
    /// # Errors
    /// A response has no form in this revision, or was refused where that ends the call.
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

    /// Returns the input that a response requires, given the declared capabilities; `None` if it is the last response
    /// of its call.
    ///
    /// # Errors
    /// The result is malformed.
    pub(crate) fn required_input(
        &self,
        method: Option<Method>,
        response: Result<&RawResult, &ErrorResponse>,
        capabilities: &ClientCapabilities,
    ) -> Result<Option<RequiredInput>, Error> {
        match (self, response) {
            (Self::Legacy(_), Err(error)) => Ok(LegacyEdge::required_input(error, capabilities)),
            (Self::Modern(_), Ok(result)) => ModernEdge::required_input(method, result, capabilities),
            (Self::Legacy(_), Ok(_)) | (Self::Modern(_), Err(_)) => Ok(None),
        }
    }

    /// Creates the request that sets the log level, unless every request carries the level.
    pub(crate) fn set_level_call(&self, level: LoggingLevel) -> Option<ClientCall> {
        match self {
            Self::Legacy(_) => Some(legacy::set_level_call(level)),
            Self::Modern(_) => None,
        }
    }

    /// Creates the request that subscribes to a resource, if the era has one.
    pub(crate) fn subscribe_call(&self, uri: &str) -> Option<ClientCall> {
        match self {
            Self::Legacy(_) => Some(legacy::resource_call(Method::ResourcesSubscribe, uri)),
            Self::Modern(_) => None,
        }
    }

    /// Creates the request that unsubscribes from a resource, if the era has one.
    pub(crate) fn unsubscribe_call(&self, uri: &str) -> Option<ClientCall> {
        match self {
            Self::Legacy(_) => Some(legacy::resource_call(Method::ResourcesUnsubscribe, uri)),
            Self::Modern(_) => None,
        }
    }

    /// Creates the `subscriptions/listen` request, if the era has one.
    pub(crate) fn listen_call(&self, filter: &ChangeFilter) -> Option<ClientCall> {
        match self {
            Self::Legacy(_) => None,
            Self::Modern(_) => Some(modern::listen_call(filter)),
        }
    }

    /// Encodes the notification that the roots have changed, if the era has one.
    pub(crate) fn roots_changed(&self) -> Option<OutgoingMessage> {
        match self {
            Self::Legacy(legacy) => Some(legacy.roots_changed()),
            Self::Modern(_) => None,
        }
    }

    /// Parses an input request that the server sent as a JSON-RPC request; a refusal is for the server.
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

    /// Encodes the response to a JSON-RPC request of the server.
    pub(crate) fn write_response(
        &self,
        id: &RequestId,
        answer: Result<&InputResponse, &Refusal>,
    ) -> OutgoingMessage {
        let posted = legacy::write_response(self.revision(), id, answer);
        OutgoingMessage { is_for_channels: matches!(self, Self::Modern(_)), ..posted }
    }
}
