use std::time::Instant;

use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span};
use trunkline_protocol::{Method, Refusal, shorten};

use super::{Interceptor, Next};
use crate::call::{BoxFuture, HandlerOutcome, IncomingCall};

/// Puts every call into a `tracing` span, `call`, at the level `DEBUG`.
///
/// The span has the method, the revision, the request's id, a prefix of the session's, the tool if there is one of
/// that name, and, where the request is part of a trace, that trace and the caller's span. It has nothing of
/// arguments and results. Where the span is disabled, a call costs one more check of a flag.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace;

impl Trace {
    /// Makes the interceptor.
    pub const fn new() -> Self {
        Self
    }
}

impl Interceptor for Trace {
    fn intercept(
        &self,
        call: IncomingCall,
        next: Next,
    ) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        let span = tracing::debug_span!(
            "call",
            method = call.method.as_str(),
            revision = Empty,
            request_id = Empty,
            session = Empty,
            tool = Empty,
            trace_id = Empty,
            parent_id = Empty,
        );
        if span.is_disabled() {
            return next.run(call);
        }
        describe(&span, &call, &next);
        let traced = async move {
            let began = Instant::now();
            tracing::debug!("begins");
            let answer = next.run(call).await;
            let took = began.elapsed();
            match &answer {
                Ok(HandlerOutcome::Done(reply)) if reply.is_tool_error() => {
                    tracing::debug!(?took, outcome = "tool_error", "ends");
                }
                Ok(HandlerOutcome::Done(_)) => tracing::debug!(?took, outcome = "ok", "ends"),
                Ok(HandlerOutcome::InputRequired(_)) => {
                    tracing::debug!(?took, outcome = "input_required", "ends");
                }
                Err(refusal) => tracing::debug!(?took, outcome = refusal.name(), "ends"),
            }
            answer
        };
        Box::pin(traced.instrument(span))
    }
}

/// Fills the span with the properties of the call; values of a peer are shortened.
fn describe(span: &Span, call: &IncomingCall, next: &Next) {
    call.context.shared().with_caller(|caller| {
        span.record("revision", caller.revision.as_str());
        if let Some(id) = &caller.request_id {
            span.record("request_id", shorten(&id.to_string()));
        }
        if let Some(session) = &caller.session {
            span.record("session", display(session.short()));
        }
    });
    // An unknown tool name is arbitrary text of the caller, and may be a misplaced secret.
    if let Some(name) = call.name().filter(|_| call.method == Method::ToolsCall) {
        span.record("tool", if next.has_tool(&name) { &*name } else { "unknown" });
    }
    if let Some(trace) = call.context.trace() {
        span.record("trace_id", display(trace.trace));
        span.record("parent_id", display(trace.parent));
    }
}
