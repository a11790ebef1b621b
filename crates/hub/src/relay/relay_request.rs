use trunkline_protocol::{ByteString, JsonObject, Method, RawJson};
use trunkline_server::IncomingCall;

/// What is to be asked of a server, for whom.
#[derive(Debug)]
pub(crate) struct RelayRequest {
    pub(crate) method: Method,
    pub(crate) rewrite: ParamRewrite,
    pub(crate) call: IncomingCall,
}

/// What is wanted of a server, beside what its caller wants of us.
#[derive(Debug)]
pub(crate) enum ParamRewrite {
    /// The same.
    Unchanged,
    /// The same under the name that it has there, which is written as JSON.
    Renamed(RawJson),
    /// Something else.
    Replaced(JsonObject),
}

impl RelayRequest {
    /// Returns the parameters that the server is sent. They are made when they are sent, so that there is one copy of them.
    pub(super) fn params(&self) -> JsonObject {
        let asked = &self.call.params().members;
        match &self.rewrite {
            ParamRewrite::Unchanged => asked.clone(),
            ParamRewrite::Renamed(name) => {
                let mut params = asked.clone();
                params.set(ByteString::from_static("name"), name.clone());
                params
            }
            ParamRewrite::Replaced(params) => params.clone(),
        }
    }
}
