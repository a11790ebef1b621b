//! A call over the connection that it has, from its first step to its end.

use std::sync::Arc;

use bytes::Bytes;
use trunkline_client::{Continuation, Error, Outcome as Stepped, Round as Questions};
use trunkline_protocol::codec::{Carried, RawResult, Reply};
use trunkline_protocol::model::CallToolResult;
use trunkline_protocol::{Method, Refusal, error_code};
use trunkline_server::{Continuation as Then, Outcome, Round, UpstreamItem};

use super::asking::{ask, tell_roots};
use super::gap::Ends;
use super::resume::Resume;
use super::witness::Witness;
use super::{Errand, Failed};
use crate::trail::{Trail, VIA};
use crate::upstream::{Caller, Lease, RunningCall, Upstream};

/// A call that has a connection.
pub(super) struct Journey<'a> {
    pub(super) server: &'a Arc<Upstream>,
    pub(super) errand: &'a Errand,
    pub(super) caller: Caller,
}

impl Journey<'_> {
    pub(super) async fn go(&mut self, lease: &Lease, resume: &Resume) -> Result<Outcome, Failed> {
        let keeps_sessions = lease.client().server().keeps_sessions();
        let mut running =
            keeps_sessions.then(|| lease.connection().calls_running.begin(&self.errand.call.context));
        self.lower_level(lease).await;
        let witness = Arc::new(Witness::of(&self.errand.call.context));
        let request = self.request(lease, resume, witness.clone());
        let stepped = {
            // Pinned here and lent: what is handed over is kept twice, and this is most of what a call weighs.
            let step = std::pin::pin!(lease.client().step(request));
            self.drive(lease, step).await
        };
        let outcome = match stepped {
            Ok(Stepped::Done(result)) => self.done(lease, result, &witness, resume.is_again()),
            // Boxed, so that calls which are simply answered have no room for it.
            stepped => Box::pin(self.go_on(lease, stepped, &witness, resume)).await,
        };
        if outcome.is_ok() {
            running.iter_mut().for_each(RunningCall::answered);
        }
        outcome
    }

    /// Goes on after a step that was not the last, or failed.
    async fn go_on(
        &self,
        lease: &Lease,
        mut stepped: Result<Stepped, Error>,
        witness: &Witness,
        resume: &Resume,
    ) -> Result<Outcome, Failed> {
        let mut has_asked = resume.is_again();
        loop {
            match stepped {
                Ok(Stepped::Done(result)) => return self.done(lease, result, witness, has_asked),
                Ok(Stepped::Ask(round)) => match &round.then {
                    Continuation::Live(_) => {
                        has_asked = true;
                        let ends = self.ends(lease);
                        let asking = ask(&self.errand.call.context, lease, &ends, *round);
                        let (round, answers) = asking.await?;
                        let step = std::pin::pin!(round.answer(answers));
                        stepped = self.drive(lease, step).await;
                    }
                    _ => return self.ask_through_caller(lease, round, resume),
                },
                Ok(_) => {
                    return Err(Refusal::INTERNAL
                        .because("the server's answer is of an unknown kind")
                        .into());
                }
                Err(error) => return Err(self.failed(lease, error, witness)),
            }
        }
    }

    fn ends(&self, lease: &Lease) -> Ends {
        let upstream = lease.client().revision();
        Ends::of(&self.errand.call.context, self.server.name(), Some(upstream))
    }

    /// Asks a server that keeps sessions for log messages as mild as the caller wants them.
    async fn lower_level(&self, lease: &Lease) {
        let level = self.caller.log_level.filter(|_| lease.client().server().keeps_sessions());
        let Some(level) = level else { return };
        if lease.client().server().capabilities.logging
            && lease.connection().lowers_level(level)
            && let Err(error) = Box::pin(lease.client().set_level(level)).await
        {
            tracing::debug!(%error, "a server was not asked for log messages");
        }
    }

    /// Makes the request, with the capabilities of the caller, which nobody else needs.
    fn request(&mut self, lease: &Lease, resume: &Resume, witness: Arc<Witness>) -> trunkline_client::Call {
        let capabilities = lease.connection().declared(std::mem::take(&mut self.caller.capabilities));
        let call = &self.errand.call;
        let meta = call.params().meta.as_ref();
        let mut request = trunkline_client::Call::carried(self.errand.method, self.errand.params(), meta)
            .capabilities(capabilities)
            .caller(lease.number())
            .observer(witness);
        // What is called by a name is on a list, on which nothing is that leads back; an address may be anybody's.
        if matches!(self.errand.method, Method::ResourcesRead | Method::Complete) {
            request = request.meta(VIA, Trail::of(meta).and(self.server.hub()));
        }
        if let Some(level) = self.caller.log_level {
            request = request.log_level(level);
        }
        if let Some(timeout) = self.server.config().timeout {
            request = request.timeout(timeout);
        }
        match resume {
            Resume::Fresh => request.answers_ahead(call.answers()),
            Resume::Again { state, .. } => request.resume_carried(Bytes::clone(state), call.answers()),
        }
    }

    /// Makes a step, and meanwhile tells the server of the caller's roots if it asks for them outside of the call.
    async fn drive(
        &self,
        lease: &Lease,
        mut step: impl Future<Output = Result<Stepped, Error>> + Unpin,
    ) -> Result<Stepped, Error> {
        if !self.caller.input.has_roots()
            || !lease.connection().input.has_roots()
            || !self.errand.method.may_ask()
        {
            return step.await;
        }
        Box::pin(async move {
            let telling = async {
                lease.connection().roots.wanted().await;
                tell_roots(&self.errand.call.context, lease).await;
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
        lease: &Lease,
        round: Box<Questions>,
        resume: &Resume,
    ) -> Result<Outcome, Failed> {
        let (questions, then) = round.into_parts();
        let ends = self.ends(lease);
        for (_, question) in &questions {
            ends.check(&self.errand.call.context, question)?;
        }
        let Continuation::Portable(state) = then else {
            return Err(Refusal::INTERNAL.into());
        };
        let era = lease.client().revision().era();
        let next = match resume.next(state, era, questions.is_empty(), self.server.limits()) {
            Ok(next) => next,
            // That it goes on and on is for the model to read.
            Err(refusal) if self.errand.method == Method::ToolsCall => {
                let said = CallToolResult::error(refusal.to_string());
                return Ok(Outcome::Done(Reply::Tool(said)));
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let then = Then::Portable(next.to_bytes(self.server.name()));
        Ok(Outcome::Ask(Round { questions, then }))
    }

    fn done(
        &self,
        lease: &Lease,
        result: RawResult,
        witness: &Witness,
        has_asked: bool,
    ) -> Result<Outcome, Failed> {
        self.server.note_answer();
        let carried =
            Carried::new(self.errand.method, lease.client().revision(), result).map_err(|problem| {
                UpstreamItem::ResultRejected.count(1);
                Error::Malformed(format!("the result: {problem}"))
            })?;
        if !carried.repairs().is_empty() {
            UpstreamItem::ResultRepaired.count(1);
            tracing::debug!(server = %self.server.name(), repairs = %carried.repairs(), "repaired a result");
        }
        let carried = if has_asked { carried.not_to_be_kept() } else { carried };
        if carried.is_error() {
            // A server of our own says so by the result of its tool, where its revision has no code for it.
            let told = || {
                let (required, problem) = Refusal::missing_in(carried.raw())?;
                Some(self.ends(lease).lacking(&required, None, &problem))
            };
            if let Some(refusal) = self.missing_capability(lease, witness).or_else(told) {
                return Err(refusal.into());
            }
        }
        Ok(Outcome::Done(Reply::Carried(carried)))
    }

    /// Tells why a call failed, and lets go of a connection that is gone.
    fn failed(&self, lease: &Lease, error: Error, witness: &Witness) -> Failed {
        if lease.client().is_closed() {
            self.server.note_if_lost(lease.connection());
        } else if is_stale(lease, &error) {
            // What was found out about the server is not true any more.
            self.server.renounce(lease.connection(), error.to_string());
            return Failed::Stale(error);
        } else if is_trouble(&error) {
            self.server.note_trouble(error.to_string());
        }
        match (&error, self.missing_capability(lease, witness)) {
            (Error::Refused(_), Some(refusal)) => Failed::Refused(refusal),
            _ => Failed::Upstream(error),
        }
    }

    /// Refuses a caller because a server failed after it asked what the caller had not declared.
    fn missing_capability(&self, lease: &Lease, witness: &Witness) -> Option<Refusal> {
        let question = witness.take_undeclared()?;
        let problem =
            format!("the server asked for `{}`, which this client did not declare", question.method());
        Some(self.ends(lease).lacking(&question.required_capability(), Some(&question), &problem))
    }
}

/// Reports whether a server refuses the very revision that was agreed on with it. In the legacy era that is agreed on for as
/// long as the session lives, and the code means whatever the server wants.
fn is_stale(lease: &Lease, error: &Error) -> bool {
    let is_said = matches!(error, Error::Refused(refused) if refused.code == error_code::UNSUPPORTED_VERSION);
    is_said && !lease.client().server().keeps_sessions()
}

/// Reports whether a server, or the way to it, is not as it should be.
fn is_trouble(error: &Error) -> bool {
    matches!(
        error,
        Error::Unreachable(_) | Error::Unauthorized { .. } | Error::Closed { .. } | Error::Status { .. }
    )
}
