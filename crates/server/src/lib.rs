//! The server SDK of trunkline: tools, prompts and resources, a handler context, and an edge per protocol era.
//!
//! A [`Server`] is made of parts and answers calls. A [`Host`] makes it, or any other [`Handler`], ready to be served
//! over channels and HTTP, in every revision of the protocol at once.
//!
//! # Invariants
//!
//! - A handler sees the same description of its caller in every revision and over every transport:
//!   `handler_context_is_the_same_over_every_revision_and_transport`.
//! - Legacy clients receive the same messages over every transport:
//!   `legacy_client_gets_the_same_responses_over_every_transport`.
//! - A principal at its call limit is refused, and other callers are not:
//!   `principal_at_its_call_limit_is_refused_while_others_are_served`.
//! - Large requests share one memory limit while they are read, run or wait for input, and small requests are answered
//!   meanwhile: `incomplete_large_requests_stay_within_the_memory_budget`,
//!   `large_call_holds_its_memory_permit_while_it_runs_in_both_eras`.
//! - Channels share the limit on unread bytes; the one that has been stalled longest is closed:
//!   `channel_idle_longest_is_evicted_from_the_shared_write_budget`. The limit counts whole buffers until the
//!   client is gone: `unread_response_counts_fully_until_its_client_disconnects`.

mod access_grant;
mod admission;
mod argument;
mod bus;
mod call;
mod caller_identity;
mod change;
mod channel;
mod completer;
mod described;
mod dispatch;
mod edge;
mod env;
mod error;
pub mod form;
mod function;
mod host;
pub mod http;
mod input_round;
mod interceptor;
mod json;
mod limits;
mod local_client;
mod message_tracing;
mod metrics;
mod open_input;
mod part;
mod party;
mod prompt;
mod provider;
mod registry;
mod request_memory;
mod resource;
#[doc(hidden)]
pub mod returned;
mod revocation;
mod roots;
mod schema;
mod server;
mod server_core;
mod shown_lists;
mod shutdown;
mod state;
#[cfg(test)]
mod testing;
mod text_arguments;
mod tool;
mod wire_tap;

/// Lists as a handler of one's own answers them: one page at a time, each item written once in each revision.
pub mod listing {
    pub use crate::registry::{ListKind, RenderedItem, page};
}

pub use trunkline_protocol as protocol;
pub use trunkline_session as session;
pub use trunkline_transport as transport;

pub use self::access_grant::AccessGrant;
pub use self::argument::Argument;
pub use self::call::{
    AskAll, AskError, BoxFuture, Caller, Confirm, Context, ElicitationCompleter, Form, Handler,
    HandlerContinuation, HandlerOutcome, IncomingCall, InputRound, SchemaForm, TypedInputRequest, ask,
    elicit, open_url, roots, sample,
};
pub use self::caller_identity::CallerIdentity;
pub use self::change::{
    ChangePublisher, ChangeSubscriber, ChangeSubscription, ServerChange, SubscriptionFilter,
};
pub use self::env::{Env, EnvPolicy, Secret};
pub use self::error::{BuildError, CallError, ToolError};
pub use self::function::{HandlerFn, NoArguments, shape};
pub use self::host::{Host, HostOptions, HttpServer, ServeError, ServerTransport, StdioServer, http, stdio};
pub use self::interceptor::{ConcurrencyLimit, Interceptor, Layers, Next, Timeout, Trace};
pub use self::json::Json;
pub use self::limits::ServerLimits;
pub use self::local_client::WeakHost;
pub use self::metrics::{Metrics, UpstreamItem};
pub use self::open_input::{OperatorAnswerError, UnansweredInput};
pub use self::part::{Part, Parts, SharedPart};
pub use self::prompt::{IntoPromptResult, Prompt};
pub use self::provider::{ChangeNotifier, PrefixedProvider, PromptProvider, ResourceProvider, ToolProvider};
pub use self::resource::{FromUri, IntoReadResult, ReadRequest, Resource, ResourceTemplate};
pub use self::revocation::{Revocation, RevocationSignal};
pub use self::roots::{Sandbox, SandboxError, SessionRoots, root_path};
pub use self::server::{Server, ServerHandle};
pub use self::shown_lists::ShownLists;
pub use self::shutdown::Shutdown;
pub use self::state::{LocalState, PersistentState, StateError};
pub use self::tool::{IntoToolResult, Tool};
pub use self::wire_tap::{ClientWireObserver, ObservedClient};
pub use trunkline_session::{SecretExposure, StateKeys, StateKeysError};
