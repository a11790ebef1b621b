//! A call relayed over a leased connection, from its first step to its result.

use std::sync::Arc;

use bytes::Bytes;
use trunkline_client::{ClientContinuation, ClientInputRound, Error, RequestDelivery, StepOutcome};
use trunkline_protocol::codec::{RawResult, RelayedResult, ServerResult};
use trunkline_protocol::model::CallToolResult;
use trunkline_protocol::trace::{TRACEPARENT, TRACESTATE};
use trunkline_protocol::{Method, RawJson, Refusal, TraceContext, error_code};
use trunkline_server::{HandlerContinuation, HandlerOutcome, InputRound, UpstreamItem};

use super::incompatibility::RevisionPair;
use super::input_round::{ask_caller, fetch_caller_roots};
use super::progress_forwarder::ProgressForwarder;
use super::resume::ResumeState;
use super::{RelayFailure, RelayRequest};
use crate::loop_detection::{VIA_KEY, ViaPath};
use crate::upstream::{CallerDetails, ConnectionLease, Upstream};

/// A call that is relayed to an upstream.
pub(super) struct RelayedCall<'a> {
    pub(super) server: &'a Arc<Upstream>,
    pub(super) request: &'a RelayRequest,
    pub(super) caller: CallerDetails,
    /// The trace that the request carries on, if calls are traced.
    pub(super) trace: Option<TraceContext>,
}

impl RelayedCall<'_> {
    pub(super) async fn run(
        &mut self,
        lease: &ConnectionLease,
        resume: &ResumeState,
    ) -> Result<HandlerOutcome, RelayFailure> {
        let keeps_sessions = lease.client().server().is_stateful();
        let _running =
            keeps_sessions.then(|| lease.connection().running_calls.begin(&self.request.call.context));
        if self.provides_roots(lease) && !lease.connection().roots.is_settled() {
            Box::pin(self.settle_roots(lease)).await?;
        }
        self.lower_log_level(lease).await;
        let forwarder = Arc::new(ProgressForwarder::new(&self.request.call.context));
        if resume.is_resumed() {
            self.report_answers();
        }
        let request = self.client_call(lease, resume, forwarder.clone());
        let stepped = {
            // Pinned here and passed by reference: a moved future is stored twice, and this one is most of a call's
            // memory.
            let step = std::pin::pin!(lease.client().step(request));
            self.drive_step(lease, step).await
        };
        match stepped {
            Ok(StepOutcome::Done(result)) => self.finish(lease, result, &forwarder, resume.is_resumed()),
            // Boxed, so that calls answered in one step do not reserve memory for it.
            stepped => Box::pin(self.continue_call(lease, stepped, &forwarder, resume)).await,
        }
    }

    /// Continues after a step that was not the last, or failed.
    async fn continue_call(
        &self,
        lease: &ConnectionLease,
        mut stepped: Result<StepOutcome, Error>,
        forwarder: &ProgressForwarder,
        resume: &ResumeState,
    ) -> Result<HandlerOutcome, RelayFailure> {
        let mut has_requested_input = resume.is_resumed();
        loop {
            match stepped {
                Ok(StepOutcome::Done(result)) => {
                    return self.finish(lease, result, forwarder, has_requested_input);
                }
                Ok(StepOutcome::InputRequired(round)) => match &round.continuation {
                    ClientContinuation::Live(_) => {
                        has_requested_input = true;
                        let revisions = self.revisions(lease);
                        let (context, events) = (&self.request.call.context, self.server.events());
                        let asking = ask_caller((context, events), lease, &revisions, *round);
                        let (round, answers) = asking.await?;
                        let step = std::pin::pin!(round.respond(answers));
                        stepped = self.drive_step(lease, step).await;
                    }
                    _ => return self.ask_through_caller(lease, round, resume),
                },
                Ok(_) => {
                    return Err(Refusal::INTERNAL
                        .with_message("the server's answer is of an unknown kind")
                        .into());
                }
                Err(error) => return Err(self.fail(lease, error, forwarder)),
            }
        }
    }

    /// Publishes that the caller has answered the input requests of an earlier step.
    fn report_answers(&self) {
        let call = &self.request.call;
        for (key, _) in call.input_responses() {
            self.server.events().input_answered(&call.context, &key, None);
        }
    }

    fn revisions(&self, lease: &ConnectionLease) -> RevisionPair {
        let upstream = lease.client().revision();
        RevisionPair::from_context(&self.request.call.context, self.server.name(), Some(upstream))
    }

    /// Sets the log level of a stateful server to the caller's, if that is lower.
    async fn lower_log_level(&self, lease: &ConnectionLease) {
        let level = self.caller.log_level.filter(|_| lease.client().server().is_stateful());
        let Some(level) = level else { return };
        if lease.client().server().capabilities.logging
            && lease.connection().lowers_log_level(level)
            && let Err(error) = Box::pin(lease.client().set_level(level)).await
        {
            tracing::debug!(%error, "cannot set the log level of a server");
        }
    }

    /// Builds the request; takes the caller's capabilities, which are not used after it.
    fn client_call(
        &mut self,
        lease: &ConnectionLease,
        resume: &ResumeState,
        forwarder: Arc<ProgressForwarder>,
    ) -> trunkline_client::ClientCall {
        let capabilities =
            lease.connection().declared_capabilities(std::mem::take(&mut self.caller.capabilities));
        let call = &self.request.call;
        let meta = call.params().meta.as_ref();
        let mut request =
            trunkline_client::ClientCall::forwarded(self.request.method, self.request.params(), meta)
                .capabilities(capabilities)
                .caller_id(lease.caller_id())
                .number(call.context.call_number())
                .observer(forwarder);
        // Tools and prompts are called by a listed name, and items that lead back to this hub are not listed; a URI
        // may belong to any server, this hub included.
        if matches!(self.request.method, Method::ResourcesRead | Method::Complete) {
            request = request.meta(VIA_KEY, ViaPath::from_meta(meta).to_raw_with(self.server.hub()));
        }
        if let Some(trace) = self.trace.take() {
            request = request.meta(TRACEPARENT, RawJson::from_text(&trace.to_string()));
            if trace.state.is_none() {
                // One that is there belongs to a context that is not continued.
                request = request.without_meta(TRACESTATE);
            }
        }
        if let Some(token) = self.server.caller_token(&call.context) {
            request = request.caller_token(token);
        }
        if let Some(level) = self.caller.log_level {
            request = request.log_level(level);
        }
        if let Some(timeout) = self.server.config().timeout {
            request = request.timeout(timeout);
        }
        match resume {
            ResumeState::Fresh => request.preset_responses(call.input_responses()),
            ResumeState::Resumed { state, .. } => {
                request.resume_raw(Bytes::clone(state), call.input_responses())
            }
        }
    }

    /// Reports whether the server may request the caller's roots over the connection, outside of the call.
    fn provides_roots(&self, lease: &ConnectionLease) -> bool {
        self.caller.input.has_roots()
            && lease.connection().input.has_roots()
            && self.request.method.may_require_input()
    }

    /// Waits until the server has the roots that it requests when its session begins.
    ///
    /// # Errors
    /// Callers with different roots use the session, which therefore got none: the call needs another one.
    async fn settle_roots(&self, lease: &ConnectionLease) -> Result<(), RelayFailure> {
        let roots = &lease.connection().roots;
        roots.settle(lease.client(), fetch_caller_roots(&self.request.call.context, lease)).await;
        match roots.is_tainted() {
            true => Err(RelayFailure::Upstream(Error::Closed {
                cause: "clients with different roots use the same session".to_owned(),
                delivery: RequestDelivery::NotSent,
                source: None,
            })),
            false => Ok(()),
        }
    }

    /// Drives a step, and meanwhile sends the caller's roots if the server requests them outside of the call.
    async fn drive_step(
        &self,
        lease: &ConnectionLease,
        mut step: impl Future<Output = Result<StepOutcome, Error>> + Unpin,
    ) -> Result<StepOutcome, Error> {
        if !self.provides_roots(lease) {
            return step.await;
        }
        Box::pin(async move {
            let providing = async {
                lease.connection().roots.requested().await;
                fetch_caller_roots(&self.request.call.context, lease).await;
            };
            tokio::select! {
                biased;
                stepped = &mut step => stepped,
                () = providing => step.await,
            }
        })
        .await
    }

    /// Returns input requests to the caller together with the state needed to resume; the hub stores nothing.
    fn ask_through_caller(
        &self,
        lease: &ConnectionLease,
        round: Box<ClientInputRound>,
        resume: &ResumeState,
    ) -> Result<HandlerOutcome, RelayFailure> {
        let (requests, continuation) = round.into_parts();
        let revisions = self.revisions(lease);
        for (key, request) in &requests {
            revisions.check(&self.request.call.context, request)?;
            self.server.events().input_requested(&self.request.call.context, key, request);
        }
        let ClientContinuation::Portable(state) = continuation else {
            return Err(Refusal::INTERNAL.into());
        };
        let era = lease.client().revision().era();
        let next = match resume.next_round(state, era, requests.is_empty(), self.server.limits()) {
            Ok(next) => next,
            // As a tool result the model can read that there were too many rounds.
            Err(refusal) if self.request.method == Method::ToolsCall => {
                let result = CallToolResult::error(refusal.to_string());
                return Ok(HandlerOutcome::Done(ServerResult::Tool(result)));
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let continuation = HandlerContinuation::Portable(next.to_bytes(self.server.name()));
        Ok(HandlerOutcome::InputRequired(InputRound { requests, continuation }))
    }

    fn finish(
        &self,
        lease: &ConnectionLease,
        result: RawResult,
        forwarder: &ProgressForwarder,
        has_requested_input: bool,
    ) -> Result<HandlerOutcome, RelayFailure> {
        self.server.clear_call_error();
        let relayed = RelayedResult::new(self.request.method, lease.client().revision(), result)
            .map_err(|problem| Error::Malformed(format!("the result: {problem}")))?;
        if !relayed.repairs().is_empty() {
            UpstreamItem::ResultRepaired.count(1);
            tracing::debug!(server = %self.server.name(), repairs = %relayed.repairs(), "repaired a result");
        }
        let relayed = if has_requested_input { relayed.without_caching() } else { relayed };
        if relayed.is_error() {
            // A trunkline server reports a missing capability in the tool result, if its revision has no error code
            // for it.
            let reported = || {
                let (required, problem) = Refusal::missing_capability_in(relayed.raw())?;
                Some(self.revisions(lease).missing_capability_refusal(&required, None, &problem))
            };
            if let Some(refusal) = self.missing_capability(lease, forwarder).or_else(reported) {
                return Err(refusal.into());
            }
        }
        Ok(HandlerOutcome::Done(ServerResult::Relayed(relayed)))
    }

    /// Classifies the failure of a call, and discards a connection that is closed or stale.
    fn fail(&self, lease: &ConnectionLease, error: Error, forwarder: &ProgressForwarder) -> RelayFailure {
        if lease.client().is_closed() {
            self.server.check_lost(lease.connection());
        } else if is_version_stale(lease, &error) {
            // The negotiated revision is outdated.
            self.server.discard_connection(lease.connection(), error.to_string());
            return RelayFailure::StaleVersion(error);
        } else if is_upstream_fault(&error) {
            self.server.record_call_error(error.to_string());
        }
        match (&error, self.missing_capability(lease, forwarder)) {
            (Error::ErrorResponse(_), Some(refusal)) => RelayFailure::Refused(refusal),
            _ => RelayFailure::Upstream(error),
        }
    }

    /// Refuses a call that failed after the server requested input that the caller had not declared.
    fn missing_capability(&self, lease: &ConnectionLease, forwarder: &ProgressForwarder) -> Option<Refusal> {
        let question = forwarder.take_undeclared()?;
        let problem =
            format!("the server asked for `{}`, which this client did not declare", question.method());
        Some(self.revisions(lease).missing_capability_refusal(
            &question.required_capability(),
            Some(&question),
            &problem,
        ))
    }
}

/// Reports whether a server rejects the revision that was negotiated with it. In the legacy era the revision is fixed
/// for the session, and the error code has no defined meaning.
fn is_version_stale(lease: &ConnectionLease, error: &Error) -> bool {
    let is_unsupported =
        matches!(error, Error::ErrorResponse(refused) if refused.code == error_code::UNSUPPORTED_VERSION);
    is_unsupported && !lease.client().server().is_stateful()
}

/// Reports whether an error is a fault of the server or of the connection to it.
fn is_upstream_fault(error: &Error) -> bool {
    matches!(
        error,
        Error::Unreachable(_)
            | Error::Unauthorized { .. }
            | Error::Authorization(_)
            | Error::Closed { .. }
            | Error::Status { .. }
    )
}
