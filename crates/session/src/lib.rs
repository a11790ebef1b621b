//! Legacy sessions, their event logs, and state between calls: traits, contract suites and bounded in-memory stores.
//!
//! Up to revision 2025-11-25 `initialize` opens a session that later requests name, and a broken event stream can be
//! resumed from its last event. This crate has the stores for both: [`SessionStore`] and [`EventStore`] are the two
//! traits, [`MemorySessions`] and [`MemoryEvents`] the stores for one node, and [`contract`] the suites that every
//! other store has to pass as well. [`SessionBus`] carries messages between processes that share stores.
//!
//! State between calls is stored under handles: [`LiveStates`] holds values of this process, [`StateStore`] is the
//! trait for JSON that may outlive it, and [`MemoryStates`] its store for one node.
//!
//! Invariants: a session or a state is only returned to the principal that created it, an event is only replayed to
//! the stream and session that it was sent on, and a store never exceeds its limits. Nothing reads a clock or starts
//! a task: time is an argument, and the owner of a store calls `expire` periodically.
//!
//! # Invariants
//!
//! - An event is replayed only on its own stream: `memory_events_pass_the_contract_suite`.
//! - A message reaches its process alone, in order, and each limit holds: `memory_bus_passes_the_contract_suite`.
//! - State is returned only to the principal that created it, and ends once: `memory_states_pass_the_contract_suite`,
//!   `live_value_is_returned_only_to_its_owner_and_dropped_once`.
//! - A store is empty once everything in it has ended: `session_store_is_empty_after_random_churn`.
//! - No id is printed whole: `session_id_debug_output_is_redacted`.
//! - No value is dropped under a lock: `removed_live_values_are_dropped_outside_the_lock`.
#![forbid(unsafe_code)]

pub mod contract;

mod event;
mod event_format;
mod event_store;
mod limits;
mod live_states;
mod memory_bus;
mod memory_events;
mod memory_sessions;
mod memory_states;
mod principal;
mod record_change;
mod record_format;
mod sealed_row;
mod secret_file;
mod session_bus;
mod session_id;
mod session_record;
mod session_store;
mod state_handle;
mod state_keys;
mod state_store;
mod state_table;
mod store_reply;
mod timestamp;

pub use self::event::{EventId, StreamEvent, StreamId};
pub use self::event_store::{EventReplay, EventStore, OutboxClaim};
pub use self::limits::{BusLimits, EventLimits, SessionLimits, StateLimits};
pub use self::live_states::{LiveStates, LiveValue};
pub use self::memory_bus::{MemoryBus, MemoryBusNetwork};
pub use self::memory_events::{LoggedEvent, MemoryEvents};
pub use self::memory_sessions::MemorySessions;
pub use self::memory_states::MemoryStates;
pub use self::principal::Principal;
pub use self::record_change::{RecordChange, RecordVersion, SessionRefresh};
pub use self::record_format::RecordError;
pub use self::sealed_row::RowKind;
pub use self::secret_file::{SecretExposure, secret_file_exposure};
pub use self::session_bus::{BusDelivery, BusEvent, ProcessId, SessionBus};
pub use self::session_id::{SessionId, ShortSessionId};
pub use self::session_record::SessionRecord;
pub use self::session_store::{BoxFuture, SessionStore, StoreError};
pub use self::state_handle::StateHandle;
pub use self::state_keys::{OpenedRecord, RecordSealer, StateKeys, StateKeysError};
pub use self::state_store::{ReplaceOutcome, StateRecord, StateSnapshot, StateStore, StoredState};
pub use self::state_table::StateLifetime;
pub use self::store_reply::StoreReply;
pub use self::timestamp::Timestamp;
