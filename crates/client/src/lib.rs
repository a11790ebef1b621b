//! The client SDK of trunkline: any server, in any revision, over whatever reaches it.
//!
//! A [`Client`] connects to a target, finds out which era of the protocol the server is of, and from then on is the same
//! for both: lists, calls, reads, changes, and questions of the server that an [`InputHandler`] answers.

mod builder;
mod cache;
mod call;
mod carrier;
mod check;
mod client;
#[cfg(feature = "config")]
pub mod config;
mod connect;
mod edge;
mod error;
mod input;
mod limits;
mod list;
mod lists_as;
mod mailbox;
mod received;
mod session;
mod slots;
mod subscribe;
mod tools;
#[cfg(test)]
mod wakes;

pub use futures_util::future::BoxFuture;
pub use trunkline_protocol as protocol;
pub use trunkline_transport as transport;

pub use self::builder::Builder;
pub use self::call::{
    Answers, Call, Calling, Completion, Continuation, LogMessage, Meanwhile, Observer, Outcome, Progress,
    Round, Suspended,
};
pub use self::client::{Client, ServerInfo};
pub use self::connect::{Attempt, OverHttp, SpokenEras, Verdicts};
pub use self::error::{Error, Refused, Unreachable};
pub use self::input::{InputHandler, Origin};
pub use self::limits::Limits;
pub use self::list::{LeftOut, List, RepairedItem};
pub use self::lists_as::ListsAs;
pub use self::received::Received;
pub use self::subscribe::{Change, Subscription, Watch, is_part_of};
