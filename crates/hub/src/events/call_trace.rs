//! The traces of calls: which are recorded, and the ids of the hub's spans.

use std::hash::{BuildHasher as _, RandomState};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use trunkline_protocol::TraceContext;
use trunkline_protocol::trace::{SpanId, TraceId};

/// Decides which traces are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSampler {
    /// Whether a request that comes with a trace is recorded if its sender records it. Default yes.
    pub follows_parent: bool,
    /// The decision for other requests. Default all.
    pub root: RootSampling,
}

/// Which traces without a parent are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RootSampling {
    /// All of them.
    Always,
    /// None of them.
    Never,
    /// Those with an id below a bound: a part of them, and the same ones in each program with the same part.
    Below(TraceIdBound),
}

/// A bound for the ids of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceIdBound(u64);

impl Default for TraceSampler {
    fn default() -> Self {
        Self { follows_parent: true, root: RootSampling::Always }
    }
}

impl RootSampling {
    /// Records a part of the traces, from 0 to 1; `None` for any other number.
    pub fn ratio(part: f64) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 2^63")]
        let bound = |part: f64| TraceIdBound((part * (1_u64 << 63) as f64) as u64);
        (0.0..=1.0).contains(&part).then(|| Self::Below(bound(part)))
    }
}

impl TraceSampler {
    fn records(self, parent: Option<&TraceContext>, trace: TraceId) -> bool {
        match (parent.filter(|_| self.follows_parent), self.root) {
            (Some(parent), _) => parent.sampled,
            (None, RootSampling::Always) => true,
            (None, RootSampling::Never) => false,
            // As in the SDKs of OpenTelemetry: the lower half of the id, without its last bit.
            (None, RootSampling::Below(TraceIdBound(bound))) => {
                let lower = u64::try_from(trace.0 & u128::from(u64::MAX)).unwrap_or(u64::MAX);
                lower >> 1 < bound
            }
        }
    }
}

/// The place of a call in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallTrace {
    pub(super) trace: TraceId,
    /// The hub's own span.
    pub(super) span: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) state: Option<String>,
    pub(super) sampled: bool,
}

/// Makes the ids of traces and spans.
///
/// They are keyed hashes of the number of a call, so that a call that goes on in another step of its handler has the same
/// ids, and nothing has to be remembered for that.
#[derive(Debug)]
pub(super) struct CallTracer {
    sampler: TraceSampler,
    keys: RandomState,
    server_calls: AtomicU64,
}

/// What an id is for.
#[derive(Hash)]
enum IdUse {
    Trace,
    Lower,
    Span,
    ServerCall,
}

impl CallTracer {
    pub(super) fn new(sampler: TraceSampler) -> Self {
        Self { sampler, keys: RandomState::new(), server_calls: AtomicU64::new(0) }
    }

    /// Returns the trace of a call: that of its request, or else one of its own.
    pub(super) fn trace(&self, call: NonZeroU64, sent: Option<TraceContext>) -> CallTrace {
        // A context that this program made for its log has an id, and no span that is recorded anywhere.
        let (parent, own) = match sent {
            Some(sent) if sent.is_local() => (None, Some(sent.trace)),
            sent => (sent, None),
        };
        let fresh = || {
            let upper = u128::from(self.id(call.get(), IdUse::Trace));
            TraceId(upper << 64 | u128::from(self.id(call.get(), IdUse::Lower)))
        };
        let trace = parent.as_ref().map(|parent| parent.trace).or(own).unwrap_or_else(fresh);
        CallTrace {
            trace,
            span: SpanId(self.id(call.get(), IdUse::Span)),
            sampled: self.sampler.records(parent.as_ref(), trace),
            parent: parent.as_ref().map(|parent| parent.parent),
            state: parent.and_then(|parent| parent.state),
        }
    }

    /// Returns the id of a span for a request to a server.
    pub(super) fn server_span(&self) -> SpanId {
        SpanId(self.id(self.server_calls.fetch_add(1, Ordering::Relaxed), IdUse::ServerCall))
    }

    /// Returns a hash that is not zero, which no id may be.
    fn id(&self, number: u64, of: IdUse) -> u64 {
        self.keys.hash_one((number, of)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(call: u64) -> NonZeroU64 {
        NonZeroU64::new(call).unwrap()
    }

    fn sent(sampled: bool) -> TraceContext {
        TraceContext { trace: TraceId(7), parent: SpanId(8), sampled, state: Some("v=1".to_owned()) }
    }

    #[test]
    fn sampler_follows_the_parent_or_the_ratio() {
        let (follows, ignores) = (
            |root| TraceSampler { follows_parent: true, root },
            |root| TraceSampler { follows_parent: false, root },
        );
        let half = RootSampling::ratio(0.5).unwrap();
        // The sampler, whether the sender records, and whether the trace with id 7 is recorded.
        for (sampler, sender, expected) in [
            (TraceSampler::default(), None, true),
            (TraceSampler::default(), Some(true), true),
            (TraceSampler::default(), Some(false), false),
            (follows(RootSampling::Never), None, false),
            (follows(RootSampling::Never), Some(true), true),
            (ignores(RootSampling::Never), Some(true), false),
            (ignores(RootSampling::Always), Some(false), true),
            (follows(RootSampling::ratio(0.0).unwrap()), None, false),
            (ignores(half), Some(false), true),
        ] {
            let parent = sender.map(sent);
            assert_eq!(sampler.records(parent.as_ref(), TraceId(7)), expected, "{sampler:?} {sender:?}");
        }
        assert_eq!((RootSampling::ratio(1.1), RootSampling::ratio(f64::NAN)), (None, None));
        let tracer = CallTracer::new(follows(half));
        let recorded = (1..=10_000).filter(|call| tracer.trace(number(*call), None).sampled).count();
        assert!((4500..5500).contains(&recorded), "{recorded} of 10,000");
    }

    #[test]
    fn call_keeps_its_ids_and_different_calls_differ() {
        let tracer = CallTracer::new(TraceSampler::default());
        let (one, other) = (tracer.trace(number(1), None), tracer.trace(number(2), None));
        assert_eq!(tracer.trace(number(1), None), one);
        assert!(one.trace != other.trace && one.span != other.span && one.parent.is_none());
        assert_ne!(tracer.server_span(), tracer.server_span());
        let joined = tracer.trace(number(1), Some(sent(true)));
        assert_eq!((joined.trace, joined.parent, joined.span), (TraceId(7), Some(SpanId(8)), one.span));
        assert_eq!(joined.state.as_deref(), Some("v=1"));
        // What the log made up is no parent.
        let local = TraceContext::local(TraceId(9), SpanId(10));
        let logged = tracer.trace(number(1), Some(local));
        assert_eq!((logged.trace, logged.parent, logged.sampled), (TraceId(9), None, true));
        assert_eq!(logged.state, None);
    }
}
