//! Delivery between processes that share sessions: what arrives at one process and concerns another is sent over the bus.
//!
//! A call, its requests to the client, its stream and a suspended call belong to the process that runs it. Another process
//! that gets a response, a cancellation, a resumption or a retry sends it there. The end of a session, changed records and
//! published changes go to all processes.
//!
//! # Invariants
//!
//! - A message has an effect only in the session and for the principal that its sender has checked, which the receiver
//!   checks again: `response_over_the_bus_needs_the_principal_of_the_session`.

mod follow;
mod handover;
mod link;
mod message;
mod outcome;
mod receive;
mod relay;
mod remote_call;

pub(crate) use self::follow::{FollowEnd, FollowedStream};
pub(crate) use self::handover::OutboxMessages;
pub(crate) use self::link::BusLink;
pub(crate) use self::message::{BusMessage, PublishedChange};
pub(crate) use self::outcome::bus_messages;
pub(crate) use self::remote_call::RemoteCall;
