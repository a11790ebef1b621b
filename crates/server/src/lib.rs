//! The server SDK of trunkline: tools, prompts and resources, a handler context, and an edge per protocol era.

mod call;
mod change;

pub use self::call::{
    Ask, AskAll, AskError, BoxFuture, Call, Caller, Confirm, Context, Continuation, Fields, Form, Handler, Outcome,
    Round, ask, elicit, open_url, roots, sample,
};
pub use self::change::{Change, Changes, Filter, Subscription};
