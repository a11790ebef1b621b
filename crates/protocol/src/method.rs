use crate::revision::{Era, Revision};

/// A request that a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `initialize`
    Initialize,
    /// `ping`
    Ping,
    /// `server/discover`
    Discover,
    /// `tools/list`
    ToolsList,
    /// `tools/call`
    ToolsCall,
    /// `resources/list`
    ResourcesList,
    /// `resources/templates/list`
    TemplatesList,
    /// `resources/read`
    ResourcesRead,
    /// `resources/subscribe`
    ResourcesSubscribe,
    /// `resources/unsubscribe`
    ResourcesUnsubscribe,
    /// `prompts/list`
    PromptsList,
    /// `prompts/get`
    PromptsGet,
    /// `completion/complete`
    Complete,
    /// `logging/setLevel`
    SetLevel,
    /// `subscriptions/listen`
    Listen,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 15] = [
        Self::Initialize,
        Self::Ping,
        Self::Discover,
        Self::ToolsList,
        Self::ToolsCall,
        Self::ResourcesList,
        Self::TemplatesList,
        Self::ResourcesRead,
        Self::ResourcesSubscribe,
        Self::ResourcesUnsubscribe,
        Self::PromptsList,
        Self::PromptsGet,
        Self::Complete,
        Self::SetLevel,
        Self::Listen,
    ];

    /// Returns the method's name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Ping => "ping",
            Self::Discover => "server/discover",
            Self::ToolsList => "tools/list",
            Self::ToolsCall => "tools/call",
            Self::ResourcesList => "resources/list",
            Self::TemplatesList => "resources/templates/list",
            Self::ResourcesRead => "resources/read",
            Self::ResourcesSubscribe => "resources/subscribe",
            Self::ResourcesUnsubscribe => "resources/unsubscribe",
            Self::PromptsList => "prompts/list",
            Self::PromptsGet => "prompts/get",
            Self::Complete => "completion/complete",
            Self::SetLevel => "logging/setLevel",
            Self::Listen => "subscriptions/listen",
        }
    }

    /// Reads a method's name, if the revision has that method.
    pub fn parse(name: &str, revision: Revision) -> Option<Self> {
        // The most common first: this runs once per request.
        let method = match name {
            "tools/call" => Self::ToolsCall,
            _ => Self::ALL.into_iter().find(|method| method.as_str() == name)?,
        };
        method.exists_in(revision.era()).then_some(method)
    }

    /// Reports whether an era has the method.
    pub const fn exists_in(self, era: Era) -> bool {
        match self {
            Self::Initialize
            | Self::Ping
            | Self::ResourcesSubscribe
            | Self::ResourcesUnsubscribe
            | Self::SetLevel => matches!(era, Era::Legacy),
            Self::Discover | Self::Listen => matches!(era, Era::Modern),
            _ => true,
        }
    }

    /// Returns the parameter that the modern `Mcp-Name` header mirrors.
    ///
    /// See [Standard Request Headers](https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http#standard-request-headers).
    pub const fn name_header_param(self) -> Option<&'static str> {
        match self {
            Self::ToolsCall | Self::PromptsGet => Some("name"),
            Self::ResourcesRead => Some("uri"),
            _ => None,
        }
    }

    /// Reports whether the server may answer with input requests.
    ///
    /// See [Supported Requests](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#supported-requests).
    pub const fn may_require_input(self) -> bool {
        matches!(self, Self::ToolsCall | Self::PromptsGet | Self::ResourcesRead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_exist_only_in_their_era() {
        let in_era = |era| Method::ALL.into_iter().filter(|m| m.exists_in(era)).count();
        assert_eq!((in_era(Era::Legacy), in_era(Era::Modern)), (13, 10));
        assert_eq!(Method::parse("ping", Revision::V2026_07_28), None);
        assert_eq!(Method::parse("server/discover", Revision::V2025_11_25), None);
        assert_eq!(Method::parse("tools/call", Revision::V2024_11_05), Some(Method::ToolsCall));
        assert_eq!(Method::parse("Tools/call", Revision::V2024_11_05), None);
    }
}
