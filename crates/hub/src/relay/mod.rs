//! One call on its way through: from a caller of any era to a server of any era, with everything that either asks.
//!
//! What a step of the client gives is what the handler returns. A question that comes with bytes goes to the caller with
//! them, and nothing is kept; a question of a call that stays open is asked in place, and the server room sees to it that
//! this works for callers of both eras. No line here asks about the era.

mod asking;
mod errand;
mod gap;
mod resume;
mod translate;

use std::sync::{Arc, Mutex, PoisonError};

use trunkline_client::{Continuation, Error, Outcome as Stepped, Round as Questions};
use trunkline_config::Attribution;
use trunkline_protocol::codec::{Carried, Reply};
use trunkline_protocol::model::{CallToolResult, Question};
use trunkline_protocol::{Method, Raw, Refusal};
use trunkline_server::{Context, Continuation as Then, Outcome, Round};

use self::asking::{ask, tell_roots};
pub(crate) use self::errand::{Errand, Wanted};
use self::gap::Ends;
use self::resume::Resume;
use self::translate::{Place, UNSUPPORTED_VERSION, as_answer, error_answer, unavailable_refusal};
use crate::options::HubOptions;
use crate::trail::{Trail, VIA};
use crate::upstream::{Lease, Party, Unavailable, Upstream};

/// Carries a call to a server, and what comes of it back.
pub(crate) async fn relay(
    mut server: Arc<Upstream>,
    errand: Errand,
    options: Arc<HubOptions>,
) -> Result<Outcome, Refusal> {
    let resume = Resume::of(&errand.call, server.name())?;
    let context = errand.call.context.clone();
    let mut is_again = false;
    loop {
        let party = party(&context, &server, errand.method).await;
        let lease = match server.lease(&party).await {
            Ok(lease) => lease,
            Err(unavailable) => match (unavailable, server.successor()) {
                // Nothing was sent yet, and the name means another server now.
                (Unavailable::Removed, Some(successor)) => {
                    server = successor;
                    continue;
                }
                (unavailable, _) => return Err(unavailable_refusal(server.name(), &unavailable)),
            },
        };
        let journey = Journey { server: &server, errand: &errand, party: &party, options: &options };
        match journey.go(lease, &resume).await {
            // What certainly did not arrive may be sent once more, over a connection of which that is not known.
            Err(Failed::Upstream(error))
                if did_not_run(&error) && !std::mem::replace(&mut is_again, true) => {}
            Err(Failed::Stale(_)) if !std::mem::replace(&mut is_again, true) => {}
            Err(Failed::Upstream(error) | Failed::Stale(error)) => {
                let ends = Ends::of(&context, server.name(), server.known().map(|known| known.revision));
                let place = Place { ends: &ends, errand: &errand };
                return error_answer(&place, &error, &errand.call);
            }
            Err(Failed::Refused(refusal)) => return as_answer(refusal, &errand.call),
            Ok(outcome) => return Ok(outcome),
        }
    }
}

/// Reports whether a call certainly came to nothing, so that it can be made anew over another connection.
fn did_not_run(error: &Error) -> bool {
    matches!(error, Error::Closed { may_have_run: false, .. })
}

/// Reports whether a server refuses the very revision that was agreed on with it. In the legacy era that is agreed on for as
/// long as the session lives, and the code means whatever the server wants.
fn is_stale(lease: &Lease, error: &Error) -> bool {
    let is_said = matches!(error, Error::Refused(refused) if refused.code == UNSUPPORTED_VERSION);
    is_said && !lease.client().server().keeps_sessions()
}

/// Reports whether a server, or the way to it, is not as it should be.
fn is_trouble(error: &Error) -> bool {
    matches!(
        error,
        Error::Unreachable(_) | Error::Unauthorized { .. } | Error::Closed { .. } | Error::Status { .. }
    )
}

/// Why a call came to nothing.
enum Failed {
    /// Because of the server, or the way to it.
    Upstream(Error),
    /// Because the server no longer speaks what was agreed on; nothing has happened.
    Stale(Error),
    /// Because of us, or of the caller.
    Refused(Refusal),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Upstream(error)
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Describes the caller, with its roots where those decide which session serves it.
async fn party(context: &Context, server: &Upstream, method: Method) -> Party {
    let party = Party::of(context);
    if !party.has_roots() || server.known().is_some_and(|known| !known.keeps_sessions) {
        return party;
    }
    let roots = match server.asks_roots() && method.may_ask() {
        // A caller who does not say which roots it has gets a session that is told of none.
        true => Some(Box::pin(context.roots()).await.unwrap_or_default()),
        false => Box::pin(context.known_roots()).await,
    };
    party.with_roots(roots)
}

/// A call that has a connection.
struct Journey<'a> {
    server: &'a Arc<Upstream>,
    errand: &'a Errand,
    party: &'a Party,
    options: &'a HubOptions,
}

/// The first thing that a server asked although nobody had declared it.
type Undeclared = Arc<Mutex<Option<Question>>>;

impl Journey<'_> {
    async fn go(&self, lease: Lease, resume: &Resume) -> Result<Outcome, Failed> {
        let _turn = self.turn(&lease).await;
        self.lower_level(&lease).await;
        let undeclared = Undeclared::default();
        let request = self.request(resume, undeclared.clone());
        let stepped = {
            // Pinned here and lent: what is handed over is kept twice, and this is most of what a call weighs.
            let step = std::pin::pin!(lease.client().step(request));
            self.drive(&lease, step).await
        };
        match stepped {
            Ok(Stepped::Done(result)) => self.done(&lease, &result, &undeclared, resume.is_again()),
            // Boxed, so that calls which are simply answered have no room for it.
            stepped => Box::pin(self.go_on(&lease, stepped, &undeclared, resume)).await,
        }
    }

    /// Goes on after a step that was not the last, or failed.
    async fn go_on(
        &self,
        lease: &Lease,
        mut stepped: Result<Stepped, Error>,
        undeclared: &Undeclared,
        resume: &Resume,
    ) -> Result<Outcome, Failed> {
        let mut has_asked = resume.is_again();
        loop {
            match stepped {
                Ok(Stepped::Done(result)) => return self.done(lease, &result, undeclared, has_asked),
                Ok(Stepped::Ask(round)) => match &round.then {
                    Continuation::Live(_) => {
                        has_asked = true;
                        let ends = self.ends(lease);
                        let asking = ask(&self.errand.call.context, lease, &ends, round);
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
                Err(error) => return Err(self.failed(lease, error, undeclared)),
            }
        }
    }

    fn ends(&self, lease: &Lease) -> Ends {
        let upstream = lease.client().server().revision;
        Ends::of(&self.errand.call.context, self.server.name(), Some(upstream))
    }

    /// Waits until nobody else may be asked something, where it has to be certain whose a question is.
    async fn turn<'l>(&self, lease: &'l Lease) -> Option<tokio::sync::SemaphorePermit<'l>> {
        let is_exact = self.server.config().attribution == Attribution::Exact;
        if !is_exact || !self.party.is_interactive() || !self.errand.method.may_ask() {
            return None;
        }
        lease.connection().turn.acquire().await.ok()
    }

    /// Asks a server that keeps sessions for log messages as mild as the caller wants them.
    async fn lower_level(&self, lease: &Lease) {
        let level = self.party.log_level;
        let Some(level) = level.filter(|_| lease.client().server().keeps_sessions()) else { return };
        if lease.client().server().capabilities.logging
            && lease.connection().lowers_level(level)
            && let Err(error) = Box::pin(lease.client().set_level(level)).await
        {
            tracing::debug!(%error, "a server was not asked for log messages");
        }
    }

    fn request(&self, resume: &Resume, undeclared: Undeclared) -> trunkline_client::Call {
        let call = &self.errand.call;
        let meta = call.params().meta.as_ref();
        let (progress, log) = (call.context.clone(), call.context.clone());
        let mut request = trunkline_client::Call::carried(self.errand.method, self.errand.params(), meta)
            .capabilities(self.party.capabilities.clone())
            .on_progress(move |report| {
                progress.carry_progress(report.progress, report.total, report.message.clone());
            })
            .on_log(move |message| {
                log.carry_log(message.level, message.logger.clone(), message.data.clone());
            })
            .on_undeclared(move |question| {
                let mut first = undeclared.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert_with(|| question.clone());
            });
        // What is called by a name is on a list, on which nothing is that leads back; an address may be anybody's.
        if matches!(self.errand.method, Method::ResourcesRead | Method::Complete) {
            request = request.meta(VIA, Trail::of(meta).and(self.server.hub()));
        }
        if let Some(level) = self.party.log_level {
            request = request.log_level(level);
        }
        if let Some(timeout) = self.server.config().timeout {
            request = request.timeout(timeout);
        }
        match resume {
            Resume::Fresh => request.answers_ahead(call.answers()),
            Resume::Again { state, .. } => request.resume_carried(state.clone(), call.answers()),
        }
    }

    /// Makes a step, and meanwhile tells the server of the caller's roots if it asks for them outside of the call.
    async fn drive(
        &self,
        lease: &Lease,
        mut step: impl Future<Output = Result<Stepped, Error>> + Unpin,
    ) -> Result<Stepped, Error> {
        if !self.party.has_roots() || !lease.connection().input.has_roots() || !self.errand.method.may_ask() {
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
        round: Questions,
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
        let limits = &self.options.limits;
        let next = match resume.next(state, questions.is_empty(), limits) {
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
        result: &Raw,
        undeclared: &Undeclared,
        has_asked: bool,
    ) -> Result<Outcome, Failed> {
        self.server.note_answer();
        let from = lease.client().server().revision;
        let carried = Carried::new(self.errand.method, from, result)
            .map_err(|problem| Error::Malformed(format!("the result: {problem}")))?;
        let carried = if has_asked { carried.not_to_be_kept() } else { carried };
        let reply = Reply::Carried(carried);
        if reply.is_tool_error() {
            // A server of our own says so by the result of its tool, where its revision has no code for it.
            let told = || {
                let (required, problem) = Refusal::missing_in(result)?;
                Some(self.ends(lease).lacking(&required, None, &problem))
            };
            if let Some(refusal) = self.missing_capability(lease, undeclared).or_else(told) {
                return Err(refusal.into());
            }
        }
        Ok(Outcome::Done(reply))
    }

    /// Tells why a call failed, and lets go of a connection that is gone.
    fn failed(&self, lease: &Lease, error: Error, undeclared: &Undeclared) -> Failed {
        if lease.client().is_closed() {
            self.server.note_if_lost(lease.connection());
        } else if is_stale(lease, &error) {
            // What was found out about the server is not true any more.
            self.server.renounce(lease.connection(), error.to_string());
            return Failed::Stale(error);
        } else if is_trouble(&error) {
            self.server.note_trouble(error.to_string());
        }
        match (&error, self.missing_capability(lease, undeclared)) {
            (Error::Refused(_), Some(refusal)) => Failed::Refused(refusal),
            _ => Failed::Upstream(error),
        }
    }

    /// Refuses a caller because a server failed after it asked what the caller had not declared.
    fn missing_capability(&self, lease: &Lease, undeclared: &Undeclared) -> Option<Refusal> {
        let question = undeclared.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let problem =
            format!("the server asked for `{}`, which this client did not declare", question.method());
        Some(self.ends(lease).lacking(&question.required_capability(), Some(&question), &problem))
    }
}
