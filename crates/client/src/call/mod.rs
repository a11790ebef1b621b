//! Calls: what is asked of a server, step by step.

mod alarms;
mod calling;
mod completion;
mod note;
mod observer;
mod outcome;
mod request;
mod running;
mod step;

pub(crate) use self::alarms::Alarms;
pub use self::calling::Calling;
pub use self::completion::Completion;
pub use self::note::{LogMessage, Progress};
pub(crate) use self::observer::LogSinks;
pub use self::observer::Observer;
pub use self::outcome::{Answers, Continuation, Outcome, Round};
pub use self::request::Call;
pub(crate) use self::request::{CarriedAnswers, Given};
pub use self::running::{Meanwhile, Suspended};
pub(crate) use self::step::{AnswerFuture, Brought, Said, Step};
