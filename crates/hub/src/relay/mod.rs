//! One call on its way through: from a caller of any era to a server of any era, with everything that either asks.
//!
//! What a step of the client gives is what the handler returns. A question that comes with bytes goes to the caller with
//! them, and nothing is kept; a question of a call that stays open is asked in place, and the server room sees to it that
//! this works for callers of both eras. No line here asks about the era.

mod asking;
mod errand;
mod gap;
mod journey;
mod resume;
mod translate;
mod witness;

use std::sync::Arc;

use trunkline_client::Error;
use trunkline_protocol::Refusal;
use trunkline_protocol::model::Root;
use trunkline_server::Outcome;

pub(crate) use self::errand::{Errand, Wanted};
use self::gap::Ends;
use self::journey::Journey;
use self::resume::Resume;
pub(crate) use self::translate::not_listed_refusal;
use self::translate::{Place, as_answer, error_answer, unavailable_refusal};
use crate::upstream::{Caller, Lease, Party, Unavailable, Upstream};

/// Carries a call to a server, and what comes of it back.
pub(crate) fn relay(
    mut server: Arc<Upstream>,
    errand: Errand,
) -> impl Future<Output = Result<Outcome, Refusal>> + Send {
    let mut is_again = false;
    async move {
        let resume = Resume::of(&errand.call, server.name())?;
        loop {
            let (lease, caller) = match find(&errand, &resume, &server).await {
                Ok(found) => found,
                Err(unavailable) => match (unavailable, server.successor()) {
                    // Nothing was sent yet, and the name means another server now.
                    (Unavailable::Removed, Some(successor)) => {
                        server = successor;
                        continue;
                    }
                    (unavailable, _) => return Err(unavailable_refusal(server.name(), &unavailable)),
                },
            };
            let mut journey = Journey { server: &server, errand: &errand, caller };
            match journey.go(&lease, &resume).await {
                // What certainly did not arrive may be sent once more, over a connection of which that is not known.
                Err(Failed::Upstream(error))
                    if did_not_run(&error) && !std::mem::replace(&mut is_again, true) => {}
                Err(Failed::Stale(_)) if !std::mem::replace(&mut is_again, true) => {}
                Err(Failed::Upstream(error) | Failed::Stale(error)) => {
                    let known = server.known().map(|known| known.revision);
                    let ends = Ends::of(&errand.call.context, server.name(), known);
                    let place = Place { ends: &ends, errand: &errand };
                    return error_answer(&place, &error, &errand.call);
                }
                Err(Failed::Refused(refusal)) => return as_answer(refusal, &errand.call),
                Ok(outcome) => return Ok(outcome),
            }
        }
    }
}

/// Reports whether a call certainly came to nothing, so that it can be made anew over another connection.
fn did_not_run(error: &Error) -> bool {
    matches!(error, Error::Closed { may_have_run: false, .. })
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

/// Finds a connection for the caller.
async fn find(
    errand: &Errand,
    resume: &Resume,
    server: &Arc<Upstream>,
) -> Result<(Lease, Caller), Unavailable> {
    let mut party = Party::of(&errand.call.context).calling(errand.method).in_era(resume.era());
    if party.has_roots() && server.keeps_sessions_for(&party) {
        party = party.with_roots(Box::pin(roots(errand, server)).await);
    }
    let lease = server.lease(&party).await?;
    Ok((lease, party.into_caller()))
}

/// Returns the caller's roots as far as they decide which session serves it.
async fn roots(errand: &Errand, server: &Upstream) -> Option<Vec<Root>> {
    let context = &errand.call.context;
    match server.asks_roots() && errand.method.may_ask() {
        // A caller who does not say which roots it has gets a session that is told of none.
        true => Some(context.roots().await.unwrap_or_default()),
        false => context.known_roots().await,
    }
}
