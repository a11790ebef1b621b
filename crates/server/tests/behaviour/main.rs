//! The behaviour of a server over HTTP and over channels, as clients see it: one module per subject.
//!
//! No test here opens a socket. Time is tokio's paused clock, so that a wait which never ends fails at once instead
//! of hanging the run.

#[cfg(test)]
#[allow(clippy::needless_pass_by_value, reason = "values are written where they are used")]
mod support;

#[cfg(test)]
mod batches;
#[cfg(test)]
mod caller_identity;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod cleanup;
#[cfg(test)]
mod disconnects;
#[cfg(test)]
mod end_of_input;
#[cfg(test)]
mod environment;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod full_channels;
#[cfg(test)]
mod handler_state;
#[cfg(test)]
mod handshake;
#[cfg(test)]
mod hosts;
#[cfg(test)]
mod input_requests;
#[cfg(test)]
mod input_rounds;
#[cfg(test)]
mod interceptors;
#[cfg(test)]
mod isolation;
#[cfg(test)]
mod operator_answers;
#[cfg(test)]
mod panics;
#[cfg(test)]
mod portable_continuations;
#[cfg(test)]
mod replicas;
#[cfg(test)]
mod restored_sessions;
#[cfg(test)]
mod resumption;
#[cfg(test)]
mod revisions;
#[cfg(test)]
mod roots;
#[cfg(test)]
mod session_eviction;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod slow_event_stores;
#[cfg(test)]
mod state;
#[cfg(test)]
mod statuses;
#[cfg(test)]
mod subscriptions;
#[cfg(test)]
mod suspended_calls;
