//! The stores in Redis, against real servers: the contracts, processes that share a store, outages, secrets and topologies.

#[cfg(test)]
mod bus;
#[cfg(test)]
mod contracts;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod many_sessions;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod refused_stores;
#[cfg(test)]
mod removals;
#[cfg(test)]
mod repeated_calls;
#[cfg(test)]
mod round_trips;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod server;
#[cfg(test)]
#[path = "../../../store-file/tests/store/session_crowd.rs"]
mod session_crowd;
#[cfg(test)]
mod shared_store;
