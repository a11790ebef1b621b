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

use std::sync::Arc;

use trunkline_client::Error;
use trunkline_protocol::{Method, Refusal};
use trunkline_server::{Context, Outcome};

pub(crate) use self::errand::{Errand, Wanted};
use self::gap::Ends;
use self::journey::Journey;
use self::resume::Resume;
use self::translate::{Place, as_answer, error_answer, unavailable_refusal};
use crate::options::HubOptions;
use crate::upstream::{Party, Unavailable, Upstream};

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
