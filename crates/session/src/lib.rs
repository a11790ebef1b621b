//! Legacy sessions, their event logs, and state kept between calls: traits, contract suites and bounded in-memory stores.
//!
//! Up to revision 2025-11-25 `initialize` opens a session that later requests name, and an event stream that broke can be
//! resumed from its last event. This room holds what both need: [`SessionStore`] and [`EventStore`] are the two traits,
//! [`MemorySessions`] and [`MemoryEvents`] the stores for one node, and [`contract`] the suites that every other store has
//! to pass as well.
//!
//! What a server keeps between calls is in state bags, each under a handle: [`LiveStates`] holds values of this process,
//! [`StateStore`] is the trait for JSON that may outlive it, and [`MemoryStates`] its store for one node.
//!
//! Three things are never true here: a session or a bag is given to a principal that did not make it, an event is replayed to a
//! stream or session that it was not sent on, and a store holds more than its limits say. Nothing reads a clock or starts
//! a task: time is an argument, and whoever owns a store calls `expire` now and then.
//!
//! # Invariants
//!
//! - An event is replayed only on its own stream: `memory_events_keep_the_contract`.
//! - State is returned only to the principal that created it, and ends once: `memory_states_keep_the_contract`,
//!   `a_live_value_is_given_only_to_who_made_it_and_ends_once`.
//! - A store is empty once everything in it has ended: `churn_of_every_kind_leaves_nothing_in_the_session_store`.
#![forbid(unsafe_code)]

pub mod contract;

mod event;
mod event_store;
mod limits;
mod live_states;
mod memory_events;
mod memory_sessions;
mod memory_states;
mod principal;
mod session_id;
mod session_record;
mod session_store;
mod state_handle;
mod state_store;
mod state_table;
mod timestamp;

pub use self::event::{EventId, StreamEvent, StreamId};
pub use self::event_store::{EventReplay, EventStore};
pub use self::limits::{EventLimits, SessionLimits, StateLimits};
pub use self::live_states::{LiveStates, LiveValue};
pub use self::memory_events::MemoryEvents;
pub use self::memory_sessions::MemorySessions;
pub use self::memory_states::MemoryStates;
pub use self::principal::Principal;
pub use self::session_id::{SessionId, ShortSessionId};
pub use self::session_record::SessionRecord;
pub use self::session_store::{BoxFuture, SessionStore, StoreError};
pub use self::state_handle::StateHandle;
pub use self::state_store::{ReplaceOutcome, StateRecord, StateStore, StoredState};
pub use self::state_table::StateLifetime;
pub use self::timestamp::Timestamp;
