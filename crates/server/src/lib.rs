//! The server SDK of trunkline: tools, prompts and resources, a handler context, and an edge per protocol era.
//!
//! A [`Server`] is made of parts and answers calls. A [`Host`] makes it, or any other [`Handler`], ready to be served
//! over channels and HTTP, in every revision of the protocol at once.

mod argument;
mod call;
mod callers;
mod change;
mod channel;
mod completer;
mod core;
mod described;
mod dispatch;
mod edge;
mod env;
mod error;
pub mod form;
mod function;
mod host;
pub mod http;
mod interceptor;
mod json;
mod limits;
mod metrics;
mod part;
mod prompt;
mod provider;
mod registry;
mod resource;
#[doc(hidden)]
pub mod returned;
mod roots;
mod round;
mod schema;
mod secret_file;
mod server;
mod shown_lists;
mod shutdown;
mod state;
mod tally;
#[cfg(test)]
mod testing;
mod text_arguments;
mod tool;
mod unanswered;
mod unread;
mod watched;

/// Lists as a handler of one's own answers them: one page at a time, each item written once in each revision.
pub mod listing {
    pub use crate::registry::{ListKind, Rendered, page};
}

pub use trunkline_protocol as protocol;
pub use trunkline_session as session;
pub use trunkline_transport as transport;

pub use self::argument::Argument;
pub use self::call::{
    Ask, AskAll, AskError, BoxFuture, Call, Caller, Confirm, Context, Continuation, Fields, Form, Handler,
    Outcome, PageDone, Round, ask, elicit, open_url, roots, sample,
};
pub use self::change::{Change, Changes, Filter, Listener, Subscription};
pub use self::env::{Env, EnvPolicy, Secret};
pub use self::error::{BuildError, CallError, ToolError};
pub use self::function::{Function, NoArguments, shape};
pub use self::host::{Binding, Host, HostOptions, Http, ServeError, Stdio, http, stdio};
pub use self::interceptor::{ConcurrencyLimit, Interceptor, Layers, Next, Timeout, Trace};
pub use self::json::Json;
pub use self::limits::Limits;
pub use self::metrics::{Metrics, UpstreamItem};
pub use self::part::{Part, Parts, SharedPart};
pub use self::prompt::{IntoPromptResult, Prompt};
pub use self::provider::{Notifier, Prefixed, PromptProvider, ResourceProvider, ToolProvider};
pub use self::resource::{Asked, FromUri, IntoReadResult, Resource, ResourceTemplate};
pub use self::roots::{Sandbox, SandboxError, root_path};
pub use self::round::{StateKeys, StateKeysError};
pub use self::server::{Server, ServerHandle};
pub use self::shown_lists::ShownLists;
pub use self::shutdown::Shutdown;
pub use self::state::{State, StateError, Stored};
pub use self::tool::{IntoToolResult, Tool};
