//! Calls to a server, step by step.
//!
//! # Invariants
//!
//! - A call that is dropped before it was sent is never sent: `call_dropped_before_sending_is_never_sent`.
//! - A call is repeated only if the server rejected it because of a header, and then once:
//!   `header_mismatch_refreshes_tools_and_retries_the_call_once`.
//! - A retry of a modern call has a new id, the same arguments and the unchanged `requestState`:
//!   `resumed_call_has_new_id_same_arguments_and_verbatim_request_state`.
//! - A call has a maximum total time, even with progress:
//!   `increasing_progress_extends_the_timeout_up_to_the_total_timeout`.
//! - Input rounds are bounded: `input_rounds_beyond_the_limit_fail_the_call`.

mod call_builder;
mod completion;
mod in_flight;
mod notifications;
mod observer;
mod outcome;
mod request;
mod step;

pub use self::call_builder::CallBuilder;
pub use self::completion::CompletionRequest;
pub use self::in_flight::{InputRoundEvent, LiveContinuation};
pub use self::notifications::{LogMessage, ProgressUpdate};
pub use self::observer::CallObserver;
pub(crate) use self::observer::LogSinks;
pub use self::outcome::{ClientContinuation, ClientInputRound, InputResponses, StepOutcome};
pub use self::request::ClientCall;
pub(crate) use self::request::{RawInputResponses, SuppliedInput};
pub(crate) use self::step::{AnswerFuture, AttachedInput, InputPayload};
