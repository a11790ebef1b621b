use trunkline_protocol::{ByteString, Method, RequestId, Revision};

/// One request on its way out, already written.
#[derive(Debug)]
pub(crate) struct OutgoingRequest {
    /// The id, which is a number in the body too; also the token under which progress is reported.
    pub(crate) id: u64,
    /// The method's name.
    pub(crate) method: ByteString,
    /// The whole JSON-RPC message.
    pub(crate) body: String,
    /// What HTTP headers repeat of it; channels have none.
    pub(crate) mirror: HeaderMirror,
    /// Who answers what the server asks within it by a request of its own.
    pub(crate) recipient: InputRecipient,
}

/// Who answers what a server asks by requests of its own while it works on a request.
///
/// Over a channel nothing says to which request a question belongs, so that this decides where it can be put at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InputRecipient {
    /// The server has nothing to ask because of it.
    #[default]
    None,
    /// Nothing was declared that can be asked, so that a question is refused.
    Undeclared,
    /// The input handler of the client, whichever request it is.
    Handler,
    /// One of several callers, by its number.
    Caller(u64),
}

impl InputRecipient {
    /// Reports whether a question can be put at all.
    pub(crate) fn can_answer(self) -> bool {
        matches!(self, Self::Handler | Self::Caller(_))
    }
}

/// A notification or an answer on its way out, already written.
#[derive(Debug)]
pub(crate) struct OutgoingMessage {
    /// The whole JSON-RPC message.
    pub(crate) body: String,
    /// What HTTP headers repeat of it.
    pub(crate) mirror: HeaderMirror,
    /// The server's question that it answers, if it does.
    pub(crate) in_reply_to: Option<RequestId>,
    /// Whether it is sent over channels only: a modern HTTP endpoint takes requests and notifications, and no answers.
    pub(crate) is_for_channels: bool,
}

/// What HTTP headers repeat of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeaderMirror {
    /// Nothing: the handshake that finds the version out.
    Nothing,
    /// The version that a handshake found out.
    Version(Revision),
    /// Everything that a request which stands alone has to repeat.
    Full {
        /// The version.
        revision: Revision,
        /// What the request names: a tool, a prompt or a resource, as it is in the body.
        name: Option<ByteString>,
        /// The headers `Mcp-Param-*`, names and encoded values.
        params: Vec<(String, String)>,
    },
}

impl OutgoingRequest {
    /// Reports whether the request is one of those by which it is found out what the server speaks.
    pub(crate) fn is_probe(&self) -> bool {
        self.method == Method::Initialize.as_str() || self.method == Method::Discover.as_str()
    }

    /// Reports whether the server may want to say something because of it that belongs to no request, and that nobody would
    /// hear who does not listen yet.
    pub(crate) fn needs_standalone_stream(&self) -> bool {
        self.recipient != InputRecipient::None || self.method == Method::ResourcesSubscribe.as_str()
    }

    /// Reports whether dropping the exchange may be told to the server: a handshake cannot be cancelled, and a server that
    /// is only being probed may not know what it was asked.
    pub(crate) fn is_cancellable(&self) -> bool {
        !self.is_probe()
    }

    /// Reports whether the request stands for as long as somebody wants to be told of changes, and is about nothing else.
    pub(crate) fn is_subscription(&self) -> bool {
        self.method == Method::Listen.as_str()
    }
}
