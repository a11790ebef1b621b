use trunkline_auth::authorizer::CallerToken;
use trunkline_protocol::{ByteString, Method, RequestId, Revision};

/// One outgoing request, already encoded.
#[derive(Debug)]
pub(crate) struct OutgoingRequest {
    /// The id, a number in the body too; also the progress token.
    pub(crate) id: u64,
    /// The method's name.
    pub(crate) method: ByteString,
    /// The whole JSON-RPC message.
    pub(crate) body: String,
    /// The parts that HTTP headers mirror; channels have no headers.
    pub(crate) mirror: HeaderMirror,
    /// The recipient of input requests that the server sends within it.
    pub(crate) recipient: InputRecipient,
    /// The token of the caller that it is sent for, if such tokens are exchanged.
    pub(crate) caller_token: Option<CallerToken>,
}

/// The recipient of input requests that a server sends while it works on a request.
///
/// A channel does not attribute input requests to requests, so that this decides to which request one can be
/// routed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InputRecipient {
    /// The request cannot cause input requests.
    #[default]
    None,
    /// The client declared no capability for input, so that an input request is refused.
    Undeclared,
    /// The input handler of the client, for any request.
    Handler,
    /// One of several callers, by its number.
    Caller(u64),
}

impl InputRecipient {
    /// Reports whether the recipient can answer input requests.
    pub(crate) fn can_answer(self) -> bool {
        matches!(self, Self::Handler | Self::Caller(_))
    }
}

/// An outgoing notification or response, already encoded.
#[derive(Debug)]
pub(crate) struct OutgoingMessage {
    /// The whole JSON-RPC message.
    pub(crate) body: String,
    /// The parts that HTTP headers mirror.
    pub(crate) mirror: HeaderMirror,
    /// The id of the server's request that it answers, if any.
    pub(crate) in_reply_to: Option<RequestId>,
    /// Whether it is sent over channels only: a modern HTTP endpoint accepts requests and notifications, but no
    /// responses.
    pub(crate) is_for_channels: bool,
}

/// The parts of a message that HTTP headers mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderMirror {
    /// Nothing: the `initialize` request, which negotiates the version.
    Nothing,
    /// The version that a handshake negotiated.
    Version(Revision),
    /// Everything that a stateless request has to mirror.
    Full {
        /// The version.
        revision: Revision,
        /// The name of the tool or prompt, or the URI of the resource, as in the body.
        name: Option<ByteString>,
        /// The headers `Mcp-Param-*`, names and encoded values.
        params: Vec<(String, String)>,
    },
}

impl OutgoingRequest {
    /// Reports whether the request probes for the server's era.
    pub(crate) fn is_probe(&self) -> bool {
        self.method == Method::Initialize.as_str() || self.method == Method::Discover.as_str()
    }

    /// Reports whether the request may cause messages on the standalone stream, which would be lost if the stream
    /// is not open yet.
    pub(crate) fn needs_standalone_stream(&self) -> bool {
        self.recipient != InputRecipient::None || self.method == Method::ResourcesSubscribe.as_str()
    }

    /// Reports whether dropping the exchange sends a cancellation: a handshake cannot be cancelled, and a probed
    /// server may not know the request.
    pub(crate) fn is_cancellable(&self) -> bool {
        !self.is_probe()
    }

    /// Reports whether the request is a subscription to changes, open for as long as it has a subscriber.
    pub(crate) fn is_subscription(&self) -> bool {
        self.method == Method::Listen.as_str()
    }
}
