//! One call: the input of a handler, its outcome, and the state that moves it from exchange to exchange.
//!
//! A call's future is polled by its current exchange, without a task of its own. When the handler requests input,
//! the exchange either forwards the input request and continues to poll (legacy), or suspends the future until the
//! response comes with another request (modern).
//!
//! # Invariants
//!
//! - A destructor that panics ends only its own call: `panicking_destructor_ends_only_its_own_call`.
//! - If one input request of a round cannot be sent, none is: `no_input_request_is_sent_if_one_of_several_is_unsupported`.

mod ask;
mod call_state;
mod caller;
mod context;
mod elicitation;
mod executing_call;
mod input_requests;
mod locked_state;
mod notification;
mod notification_queue;
mod outcome;
mod own_trace;
mod received_input;
mod scope;

pub use self::ask::{
    AskAll, AskError, Confirm, Form, SchemaForm, TypedInputRequest, ask, elicit, open_url, roots, sample,
};
pub(crate) use self::call_state::CallState;
pub use self::caller::Caller;
pub use self::context::Context;
pub use self::elicitation::ElicitationCompleter;
pub(crate) use self::elicitation::elicitation_complete;
pub(crate) use self::executing_call::{CallProgress, ExecutingCall};
pub(crate) use self::notification::PendingAction;
pub use self::outcome::{BoxFuture, Handler, HandlerContinuation, HandlerOutcome, IncomingCall, InputRound};
pub(crate) use self::own_trace::{ensure_trace, set_trace};
pub(crate) use self::scope::{CallScope, SessionState};
