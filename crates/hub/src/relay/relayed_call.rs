//! A call over the connection that it has, from its first step to its end.

use std::sync::Arc;

use bytes::Bytes;
use trunkline_client::{ClientContinuation, ClientInputRound as Questions, Error, StepOutcome as Stepped};
use trunkline_protocol::codec::{RawResult, RelayedResult, ServerResult};
use trunkline_protocol::model::CallToolResult;
use trunkline_protocol::{Method, Refusal, error_code};
use trunkline_server::{HandlerContinuation as Then, HandlerOutcome, InputRound, UpstreamItem};

use super::incompatibility::RevisionPair;
use super::input_round::{ask_caller, fetch_caller_roots};
use super::progress_forwarder::ProgressForwarder;
use super::resume::ResumeState;
use super::{RelayFailure, RelayRequest};
use crate::loop_detection::{VIA_KEY, ViaPath};
use crate::upstream::{CallerDetails, ConnectionLease, RunningCall, Upstream};

/// A call that has a connection.
pub(super) struct RelayedCall<'a> {
    pub(super) server: &'a Arc<Upstream>,
    pub(super) request: &'a RelayRequest,
    pub(super) caller: CallerDetails,
}

impl RelayedCall<'_> {
    pub(super) async fn run(
        &mut self,
        lease: &ConnectionLease,
        resume: &ResumeState,
    ) -> Result<HandlerOutcome, RelayFailure> {
        let keeps_sessions = lease.client().server().is_stateful();
        let mut running =
            keeps_sessions.then(|| lease.connection().running_calls.begin(&self.request.call.context));
        self.lower_log_level(lease).await;
        let witness = Arc::new(ProgressForwarder::new(&self.request.call.context));
        let request = self.client_call(lease, resume, witness.clone());
        let stepped = {
            // Pinned here and lent: what is handed over is kept twice, and this is most of what a call weighs.
            let step = std::pin::pin!(lease.client().step(request));
            self.drive_step(lease, step).await
        };
        let outcome = match stepped {
            Ok(Stepped::Done(result)) => self.finish(lease, result, &witness, resume.is_resumed()),
            // Boxed, so that calls which are simply answered have no room for it.
            stepped => Box::pin(self.continue_call(lease, stepped, &witness, resume)).await,
        };
        if outcome.is_ok() {
            running.iter_mut().for_each(RunningCall::answered);
        }
        outcome
    }

    /// Goes on after a step that was not the last, or failed.
    async fn continue_call(
        &self,
        lease: &ConnectionLease,
        mut stepped: Result<Stepped, Error>,
        witness: &ProgressForwarder,
        resume: &ResumeState,
    ) -> Result<HandlerOutcome, RelayFailure> {
        let mut has_asked = resume.is_resumed();
        loop {
            match stepped {
                Ok(Stepped::Done(result)) => return self.finish(lease, result, witness, has_asked),
                Ok(Stepped::InputRequired(round)) => match &round.continuation {
                    ClientContinuation::Live(_) => {
                        has_asked = true;
                        let ends = self.revisions(lease);
                        let asking = ask_caller(&self.request.call.context, lease, &ends, *round);
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
                Err(error) => return Err(self.fail(lease, error, witness)),
            }
        }
    }

    fn revisions(&self, lease: &ConnectionLease) -> RevisionPair {
        let upstream = lease.client().revision();
        RevisionPair::from_context(&self.request.call.context, self.server.name(), Some(upstream))
    }

    /// Asks a server that keeps sessions for log messages as mild as the caller wants them.
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

    /// Makes the request, with the capabilities of the caller, which nobody else needs.
    fn client_call(
        &mut self,
        lease: &ConnectionLease,
        resume: &ResumeState,
        witness: Arc<ProgressForwarder>,
    ) -> trunkline_client::ClientCall {
        let capabilities =
            lease.connection().declared_capabilities(std::mem::take(&mut self.caller.capabilities));
        let call = &self.request.call;
        let meta = call.params().meta.as_ref();
        let mut request =
            trunkline_client::ClientCall::forwarded(self.request.method, self.request.params(), meta)
                .capabilities(capabilities)
                .caller_id(lease.caller_id())
                .observer(witness);
        // What is called by a name is on a list, on which nothing is that leads back; an address may be anybody's.
        if matches!(self.request.method, Method::ResourcesRead | Method::Complete) {
            request = request.meta(VIA_KEY, ViaPath::from_meta(meta).to_raw_with(self.server.hub()));
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

    /// Makes a step, and meanwhile tells the server of the caller's roots if it asks for them outside of the call.
    async fn drive_step(
        &self,
        lease: &ConnectionLease,
        mut step: impl Future<Output = Result<Stepped, Error>> + Unpin,
    ) -> Result<Stepped, Error> {
        if !self.caller.input.has_roots()
            || !lease.connection().input.has_roots()
            || !self.request.method.may_require_input()
        {
            return step.await;
        }
        Box::pin(async move {
            let telling = async {
                lease.connection().roots.requested().await;
                fetch_caller_roots(&self.request.call.context, lease).await;
            };
            tokio::select! {
                biased;
                stepped = &mut step => stepped,
                () = telling => step.await,
            }
        })
        .await
    }

    /// Puts questions to the caller together with what is needed to go on, and keeps nothing.
    fn ask_through_caller(
        &self,
        lease: &ConnectionLease,
        round: Box<Questions>,
        resume: &ResumeState,
    ) -> Result<HandlerOutcome, RelayFailure> {
        let (questions, then) = round.into_parts();
        let ends = self.revisions(lease);
        for (_, question) in &questions {
            ends.check(&self.request.call.context, question)?;
        }
        let ClientContinuation::Portable(state) = then else {
            return Err(Refusal::INTERNAL.into());
        };
        let era = lease.client().revision().era();
        let next = match resume.next_round(state, era, questions.is_empty(), self.server.limits()) {
            Ok(next) => next,
            // That it goes on and on is for the model to read.
            Err(refusal) if self.request.method == Method::ToolsCall => {
                let said = CallToolResult::error(refusal.to_string());
                return Ok(HandlerOutcome::Done(ServerResult::Tool(said)));
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let then = Then::Portable(next.to_bytes(self.server.name()));
        Ok(HandlerOutcome::InputRequired(InputRound { requests: questions, continuation: then }))
    }

    fn finish(
        &self,
        lease: &ConnectionLease,
        result: RawResult,
        witness: &ProgressForwarder,
        has_asked: bool,
    ) -> Result<HandlerOutcome, RelayFailure> {
        self.server.clear_call_error();
        let carried = RelayedResult::new(self.request.method, lease.client().revision(), result).map_err(
            |problem| {
                UpstreamItem::ResultRejected.count(1);
                Error::Malformed(format!("the result: {problem}"))
            },
        )?;
        if !carried.repairs().is_empty() {
            UpstreamItem::ResultRepaired.count(1);
            tracing::debug!(server = %self.server.name(), repairs = %carried.repairs(), "repaired a result");
        }
        let carried = if has_asked { carried.without_caching() } else { carried };
        if carried.is_error() {
            // A server of our own says so by the result of its tool, where its revision has no code for it.
            let told = || {
                let (required, problem) = Refusal::missing_capability_in(carried.raw())?;
                Some(self.revisions(lease).missing_capability_refusal(&required, None, &problem))
            };
            if let Some(refusal) = self.missing_capability(lease, witness).or_else(told) {
                return Err(refusal.into());
            }
        }
        Ok(HandlerOutcome::Done(ServerResult::Relayed(carried)))
    }

    /// Tells why a call failed, and lets go of a connection that is gone.
    fn fail(&self, lease: &ConnectionLease, error: Error, witness: &ProgressForwarder) -> RelayFailure {
        if lease.client().is_closed() {
            self.server.check_lost(lease.connection());
        } else if is_version_stale(lease, &error) {
            // What was found out about the server is not true any more.
            self.server.discard_connection(lease.connection(), error.to_string());
            return RelayFailure::StaleVersion(error);
        } else if is_upstream_fault(&error) {
            self.server.record_call_error(error.to_string());
        }
        match (&error, self.missing_capability(lease, witness)) {
            (Error::ErrorResponse(_), Some(refusal)) => RelayFailure::Refused(refusal),
            _ => RelayFailure::Upstream(error),
        }
    }

    /// Refuses a caller because a server failed after it asked what the caller had not declared.
    fn missing_capability(&self, lease: &ConnectionLease, witness: &ProgressForwarder) -> Option<Refusal> {
        let question = witness.take_undeclared()?;
        let problem =
            format!("the server asked for `{}`, which this client did not declare", question.method());
        Some(self.revisions(lease).missing_capability_refusal(
            &question.required_capability(),
            Some(&question),
            &problem,
        ))
    }
}

/// Reports whether a server refuses the very revision that was agreed on with it. In the legacy era that is agreed on for as
/// long as the session lives, and the code means whatever the server wants.
fn is_version_stale(lease: &ConnectionLease, error: &Error) -> bool {
    let is_said =
        matches!(error, Error::ErrorResponse(refused) if refused.code == error_code::UNSUPPORTED_VERSION);
    is_said && !lease.client().server().is_stateful()
}

/// Reports whether a server, or the way to it, is not as it should be.
fn is_upstream_fault(error: &Error) -> bool {
    matches!(
        error,
        Error::Unreachable(_) | Error::Unauthorized { .. } | Error::Closed { .. } | Error::Status { .. }
    )
}
