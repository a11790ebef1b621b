//! One call: what a handler is given, what it may answer, and what carries it from exchange to exchange.
//!
//! A call's future is polled by the exchange that carries it, without a task of its own. When the handler asks
//! something, the exchange either passes the question on and goes on polling (legacy) or parks the future until the
//! answer comes with another request (modern).

mod ask;
mod caller;
mod context;
mod given;
mod note;
mod note_queue;
mod outcome;
mod page;
mod questions;
mod running;
mod shared;
mod state;
mod surroundings;

pub use self::ask::{Ask, AskAll, AskError, Confirm, Fields, Form, ask, elicit, open_url, roots, sample};
pub use self::caller::Caller;
pub use self::context::Context;
pub use self::outcome::{BoxFuture, Call, Continuation, Handler, Outcome, Round};
pub use self::page::PageDone;
pub(crate) use self::page::page_done;
pub(crate) use self::running::{Running, Step};
pub(crate) use self::shared::Shared;
pub(crate) use self::surroundings::{SessionKeep, Surroundings};
