//! The event stream of a hub: what happens on both wires, with calls, states, clients, logs and lines of stderr.
//!
//! Producers publish to one bounded ring; viewers subscribe and read it at their own pace. Calls are published only
//! while there is a subscription, and messages only while one of them has messages.
//!
//! # Invariants
//!
//! - The ring stays within its bounds at any rate: `ring_stays_within_its_bounds_at_any_rate`.
//! - A slow reader loses the oldest events and learns how many: `slow_reader_gets_the_count_of_what_it_lost`.
//! - A viewer sees nothing of another principal's calls: `viewer_sees_only_what_its_principal_may_see`.
//! - A subscription without messages has none copied: `subscription_without_messages_copies_none`.
//! - Nothing outside of the allow-list enters: `secrets_are_masked_before_they_enter_the_ring`.

mod body;
mod call_trace;
mod event;
mod event_text;
mod masking;
mod observed_call;
mod observed_server_call;
mod record_file;
mod ring;
mod server_reports;
mod stream;
mod subscription;
#[cfg(test)]
mod tests;
mod wire_taps;

pub use self::body::{
    CallEndEvent, CallOutcome, CallStartEvent, CallTraceEvent, ClientEvent, EventBody, EventDirection,
    EventWire, InputAnswerer, InputEvent, LogEvent, MessageEvent, ServerCallEvent, ServerConnectionEvent,
    ServerStateEvent, StderrEvent,
};
pub use self::call_trace::{RootSampling, TraceIdBound, TraceSampler};
pub use self::event::{EventParseError, EventTime, HubEvent};
pub(crate) use self::observed_call::ObservedCall;
pub(crate) use self::observed_server_call::{ObservedServerCall, ServerCallEnd};
pub use self::record_file::{RECORD_VERSION, RecordFileError, RecordHeader, RecordReader};
pub use self::stream::HubEvents;
pub use self::subscription::{EventSubscription, EventViewer};
pub(crate) use self::wire_taps::transport_name;
