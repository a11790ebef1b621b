use trunkline_protocol::{ByteString, Members, Method, Raw};
use trunkline_server::Call;

/// What is to be asked of a server, for whom.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) method: Method,
    pub(crate) wanted: Wanted,
    pub(crate) call: Call,
}

/// What is wanted of a server, beside what its caller wants of us.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The same.
    Same,
    /// The same under the name that it has there, which is written as JSON.
    Named(Raw),
    /// Something else.
    Other(Members),
}

impl Errand {
    /// Returns the parameters that the server is sent. They are made when they are sent, so that there is one copy of them.
    pub(super) fn params(&self) -> Members {
        let asked = &self.call.params().members;
        match &self.wanted {
            Wanted::Same => asked.clone(),
            Wanted::Named(name) => {
                let mut params = asked.clone();
                params.set(ByteString::from_static("name"), name.clone());
                params
            }
            Wanted::Other(params) => params.clone(),
        }
    }
}
