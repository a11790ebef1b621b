use trunkline_protocol::trace::{SpanId, TRACEPARENT, TRACESTATE, TraceContext, TraceId};
use trunkline_protocol::{Params, RawJson};

/// Returns the trace of a request. A request without a legible one gets one of our own, in its `_meta`, so that every
/// line about it can be found by one id: in this log, and in those of the servers that a hub passes it on to.
pub(crate) fn ensure_trace(params: &mut Params) -> TraceId {
    if let Some(context) = TraceContext::read(params.meta.as_ref()) {
        return context.trace;
    }
    let random = || getrandom::u64().unwrap_or_default();
    // Neither may be zero.
    let trace = TraceId((u128::from(random()) << 64 | u128::from(random())).max(1));
    set_trace(params, &TraceContext::local(trace, SpanId(random().max(1))));
    trace
}

/// Sets the trace of a request, in its `_meta`.
pub(crate) fn set_trace(params: &mut Params, context: &TraceContext) {
    let meta = params.meta.get_or_insert_default();
    meta.set(TRACEPARENT, RawJson::from_text(&context.to_string()));
    match &context.state {
        Some(state) => meta.set(TRACESTATE, RawJson::from_text(state)),
        // One that is there belongs to a context that is not legible.
        None => drop(meta.take(TRACESTATE)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn params(meta: &serde_json::Value) -> Params {
        Params { meta: RawJson::from(meta).members().ok(), ..Params::default() }
    }

    #[test]
    fn request_without_a_legible_trace_gets_one() {
        let sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut with_trace = params(&json!({ "traceparent": sent, "tracestate": "a=1" }));
        assert_eq!(ensure_trace(&mut with_trace).to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert!(with_trace.meta.unwrap().get("tracestate").is_some());
        for meta in [json!(null), json!({}), json!({ "a": 1, "traceparent": "x", "tracestate": "a=1" })] {
            let (mut one, mut other) = (params(&meta), params(&meta));
            let trace = ensure_trace(&mut one);
            assert_eq!(ensure_trace(&mut one), trace, "it is added once");
            assert_ne!(ensure_trace(&mut other), trace);
            let members = one.meta.unwrap();
            assert_eq!(members.get("a").is_some(), meta.get("a").is_some());
            assert_eq!(members.get("tracestate").unwrap().as_text().unwrap(), "trunkline=local");
        }
    }
}
