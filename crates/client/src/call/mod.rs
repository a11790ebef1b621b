//! Calls to a server, step by step.

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
