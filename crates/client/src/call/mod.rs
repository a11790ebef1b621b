//! Calls to a server, step by step.
//!
//! # Invariants
//!
//! - A call that is dropped before it was sent is never sent: `a_call_that_is_dropped_before_it_was_sent_is_never_sent`.
//! - A call is repeated only if the server rejected it because of a header, and then once:
//!   `a_call_that_a_header_spoils_is_made_once_more_with_a_fresh_list`.
//! - A retry of a modern call has a new id, the same arguments and the unchanged `requestState`:
//!   `a_retry_has_a_new_id_the_same_arguments_and_the_state_byte_for_byte`.
//! - A call has a maximum total time, even with progress:
//!   `progress_keeps_a_call_alive_up_to_a_hard_cap_and_only_if_it_grows`.
//! - Input rounds are bounded: `a_server_that_asks_without_end_is_given_up`.

mod call_builder;
mod completion;
mod deadline_timer;
mod in_flight;
mod notifications;
mod observer;
mod outcome;
mod request;
mod step;

pub use self::call_builder::CallBuilder;
pub use self::completion::CompletionRequest;
pub(crate) use self::deadline_timer::DeadlineTimer;
pub use self::in_flight::{InputRoundEvent, LiveContinuation};
pub use self::notifications::{LogMessage, ProgressUpdate};
pub use self::observer::CallObserver;
pub(crate) use self::observer::LogSinks;
pub use self::outcome::{ClientContinuation, ClientInputRound, InputResponses, StepOutcome};
pub use self::request::ClientCall;
pub(crate) use self::request::{RawInputResponses, SuppliedInput};
pub(crate) use self::step::{AnswerFuture, AttachedInput, CallStep, InputPayload};
