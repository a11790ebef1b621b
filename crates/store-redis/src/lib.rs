//! Sessions, events and handler state in Redis, which several processes share and which survive their restarts.
//!
//! [`RedisStore`] connects to the server that a [`RedisAddress`] names, a single one, the primary that Sentinel names or a
//! cluster, and gives the three stores: [`RedisSessions`], [`RedisEvents`] and [`RedisStates`], and with them the bus between
//! the processes: [`RedisBus`]. Nothing is cached here. What
//! has to be atomic is a script in `src/lua`, and all keys that one script uses are in one slot of a cluster: a session is in
//! a slot of its own, the index of all sessions is in one slot, so that the limits on sessions are exact, the events are in up
//! to 64 partitions by session, the states of handlers are in one slot, and so is the bus. The limit on the size of all events is divided
//! among the partitions.
//!
//! Records and events are sealed with the state keys, and ids and principals are digests, so that a reader of Redis sees
//! neither. Times of use, sizes and numbers are visible.
//!
//! # Time
//!
//! Expiry is decided in scripts. Each call brings the time that the caller works with and what its clock shows; a clock that is
//! 5 s or more off the clock of Redis is corrected. Clocks within that tolerance may differ, so a session or state that another
//! process wrote last lives 10 s longer than its limits. Every row also expires in Redis by itself, a minute later than for any
//! process, so that nothing stays behind when no process sweeps.
//!
//! A use of a session is recorded a sixteenth of the idle limit ahead, so that the row is written that rarely.
//!
//! # Failures
//!
//! An operation that takes 1.8 s fails with [`StoreError::Unavailable`](trunkline_session::StoreError), and one that meets a
//! broken connection is repeated once on a new one: every script recognizes its own repetition, but the one that removes expired
//! sessions: its repetition removes nothing and so does not return their ids. The events of these sessions end by their own age.
//! What a failover loses depends on Redis: with asynchronous replication, the last writes.
//!
//! # Invariants
//!
//! - The stores keep the contracts: `redis_sessions_pass_the_contract_suite`, `redis_events_pass_the_contract_suite`,
//!   `redis_states_pass_the_contract_suite`.
//! - Two processes share one limit and report each expired session once: `processes_share_quotas_and_expire_each_session_once`.
//! - Clock skew ends no session early: `clock_skew_between_processes_ends_no_session_early`.
//! - An outage is reported within 2 s and heals by itself: `outage_is_reported_within_two_seconds_and_heals`.
//! - A call that is repeated has one effect: `call_that_is_repeated_after_a_lost_reply_has_one_effect`.
//! - A request is one round trip, and events that wait share one: `one_request_is_one_round_trip_and_one_event_is_one`,
//!   `events_that_wait_share_one_round_trip`.
//! - A message to a process arrives, whatever happens to connections, and one to a killed process is refused within seconds:
//!   `bus_goes_on_after_an_outage_and_loses_no_message`, `killed_process_is_gone_within_seconds`.
//! - Redis shows no id and no content: `redis_contains_neither_ids_nor_content`.
#![forbid(unsafe_code)]

mod address;
mod address_server;
mod append_queue;
mod bus;
mod bus_reader;
mod clock;
#[cfg(test)]
mod clock_skew;
mod connection;
mod error;
mod events;
mod header;
mod link;
mod principal_digest;
mod scripts;
mod session_index;
mod session_lists;
mod sessions;
mod state_row;
mod states;
mod store;
mod stored_event;

pub use self::address::{AddressError, RedisAddress};
pub use self::bus::RedisBus;
pub use self::error::RedisStoreError;
pub use self::events::RedisEvents;
pub use self::sessions::RedisSessions;
pub use self::states::RedisStates;
pub use self::store::{RedisStore, RedisStoreLimits};
