//! The server SDK of trunkline: tools, prompts and resources, a handler context, and an edge per protocol era.

mod call;
mod channel;
mod change;
mod core;
mod edge;
pub mod http;
mod limits;
mod round;
mod shutdown;

pub use self::call::{
    Ask, AskAll, AskError, BoxFuture, Call, Caller, Confirm, Context, Continuation, Fields, Form, Handler, Outcome,
    Round, ask, elicit, open_url, roots, sample,
};
pub use self::change::{Change, Changes, Filter, Subscription};
pub use self::limits::Limits;
pub use self::round::{StateKeys, StateKeysError};
pub use self::shutdown::Shutdown;

// Stand-ins until the authoring half lands.
mod server {
    #[derive(Clone, Debug)]
    pub struct ServerHandle;
}
mod schema {
    pub(crate) fn flat<T>() -> trunkline_protocol::Raw {
        trunkline_protocol::Raw::NULL
    }
}
