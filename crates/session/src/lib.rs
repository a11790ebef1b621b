//! Legacy sessions and their event logs: traits, contract suites and bounded in-memory stores.
//!
//! Up to revision 2025-11-25 `initialize` opens a session that later requests name, and an event stream that broke can be
//! resumed from its last event. This room holds what both need: [`SessionStore`] and [`EventStore`] are the two traits,
//! [`MemorySessions`] and [`MemoryEvents`] the stores for one node, and [`contract`] the suites that every other store has
//! to pass as well.
//!
//! Three things are never true here: a session is given to a principal that did not make it, an event is replayed to a
//! stream or session that it was not sent on, and a store holds more than its limits say. Nothing reads a clock or starts
//! a task: time is an argument, and whoever owns a store calls `expire` now and then.
#![forbid(unsafe_code)]

pub mod contract;

mod event;
mod event_store;
mod limits;
mod memory_events;
mod memory_sessions;
mod principal;
mod session_id;
mod session_record;
mod session_store;
mod timestamp;

pub use self::event::{Event, EventId, StreamId};
pub use self::event_store::{EventStore, Replay};
pub use self::limits::{EventLimits, SessionLimits};
pub use self::memory_events::MemoryEvents;
pub use self::memory_sessions::MemorySessions;
pub use self::principal::Principal;
pub use self::session_id::{SessionId, ShortId};
pub use self::session_record::SessionRecord;
pub use self::session_store::{BoxFuture, SessionStore, StoreError};
pub use self::timestamp::Timestamp;
