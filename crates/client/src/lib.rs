//! The client SDK of trunkline, for servers of any protocol revision and over any transport.
//!
//! A [`Client`] connects to a target and detects the era of the server. From then on its interface is the same for
//! both eras: lists, calls, resource reads, change subscriptions, and input requests that an [`InputHandler`]
//! answers.
//!
//! # Invariants
//!
//! - A program sees the same results over every transport: `streamable_http_supports_all_features_in_every_revision`,
//!   `websocket_supports_all_features_in_every_revision`,
//!   `http_sse_supports_all_features_in_every_legacy_revision`.
//! - A dropped client leaves no task, connection or session: `dropped_or_closed_http_client_leaves_no_connection_or_task`,
//!   `dropped_client_deletes_its_http_session`.

pub mod authorization;
mod builder;
mod cache;
mod cache_invalidation;
mod call;
mod capability_lists;
mod client;
mod client_transport;
#[cfg(feature = "config")]
pub mod config;
mod connect;
mod dropped_message;
mod edge;
mod error;
mod input;
mod known_tools;
mod limits;
mod list;
mod message_budget;
mod output_check;
mod polled_value;
mod resumable_session;
mod session_listener;
mod session_reopening;
mod slab;
mod stub;
mod subscribe;
mod user_timeout;
mod wire_tap;
mod with_raw;

pub use futures_util::future::BoxFuture;
pub use trunkline_protocol as protocol;
pub use trunkline_transport::{self as transport, http::RequestDelivery};

pub use self::builder::ClientBuilder;
pub use self::call::{
    CallBuilder, CallObserver, ClientCall, ClientContinuation, ClientInputRound, CompletionRequest,
    InputResponses, InputRoundEvent, LiveContinuation, LogMessage, ProgressUpdate, StepOutcome,
};
pub use self::capability_lists::CapabilityLists;
pub use self::client::{Client, ServerInfo};
pub use self::connect::{ConnectAttempt, EraCache, HttpTransportKind, SupportedEras};
pub use self::dropped_message::DroppedMessage;
pub use self::error::{ConnectError, Error, ErrorResponse, ErrorSource};
pub use self::input::{InputHandler, InputOrigin};
pub use self::limits::ClientLimits;
pub use self::list::{ItemList, RepairedItem, SkippedItem};
pub use self::message_budget::MessageBudget;
pub use self::output_check::argument_error;
pub use self::resumable_session::{ResumableSession, ResumableSessionError};
pub use self::subscribe::{ChangeEvent, ChangeFilter, ChangeStream, is_sub_resource};
pub use self::wire_tap::ServerWireObserver;
pub use self::with_raw::WithRaw;
