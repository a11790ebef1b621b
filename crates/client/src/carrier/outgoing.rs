use std::borrow::Cow;

use trunkline_protocol::header::encode_value;
use trunkline_protocol::{ByteString, Id, Method, Revision};

/// One request on its way out, already written.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The id, which is a number in the body too; also the token under which progress is reported.
    pub(crate) id: u64,
    /// The method's name.
    pub(crate) method: ByteString,
    /// The whole JSON-RPC message.
    pub(crate) body: String,
    /// What HTTP headers repeat of it; channels have none.
    pub(crate) mirror: Mirror,
    /// Whether the server may ask something within it, so that a question without a stream of its own may belong here.
    pub(crate) may_ask: bool,
}

/// A notification or an answer on its way out, already written.
#[derive(Debug)]
pub(crate) struct Posted {
    /// The whole JSON-RPC message.
    pub(crate) body: String,
    /// What HTTP headers repeat of it.
    pub(crate) mirror: Mirror,
    /// The server's question that it answers, if it does.
    pub(crate) answers: Option<Id>,
}

/// What HTTP headers repeat of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mirror {
    /// Nothing: the handshake that finds the version out.
    Nothing,
    /// The version that a handshake found out.
    Version(Revision),
    /// Everything that a request which stands alone has to repeat.
    Whole {
        /// The version.
        revision: Revision,
        /// What the request names: a tool, a prompt or a resource, as it is in the body.
        name: Option<ByteString>,
        /// The headers `Mcp-Param-*`, names and encoded values.
        params: Vec<(String, String)>,
    },
}

impl Outgoing {
    /// Reports whether dropping the exchange may be told to the server: a handshake cannot be cancelled, and a server that
    /// is only being probed may not know what it was asked.
    pub(crate) fn is_cancellable(&self) -> bool {
        self.method != Method::Initialize.as_str() && self.method != Method::Discover.as_str()
    }

    /// Returns the headers that mirror the body, with their values as they travel.
    pub(crate) fn headers(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        self.mirror.headers(Some(&self.method))
    }
}

impl Posted {
    /// Returns the headers that mirror the body, with their values as they travel.
    pub(crate) fn headers(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        self.mirror.headers(None)
    }
}

impl Mirror {
    fn headers<'a>(&'a self, method: Option<&'a str>) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
        let version = |revision: Revision| ("MCP-Protocol-Version".into(), revision.as_str().into());
        match self {
            Self::Nothing => Vec::new(),
            Self::Version(revision) => vec![version(*revision)],
            Self::Whole { revision, name, params } => {
                let mut headers = vec![version(*revision)];
                headers.extend(method.map(|method| ("Mcp-Method".into(), method.into())));
                headers.extend(name.as_ref().map(|name| ("Mcp-Name".into(), encode_value(name))));
                headers.extend(params.iter().map(|(name, value)| (name.into(), value.into())));
                headers
            }
        }
    }
}
