//! Connecting over HTTP: requests that stand alone first, then a session, then HTTP+SSE.
//!
//! What an answer means is decided by [`judge_http`] and [`descends`]; here the questions are asked.

use std::sync::Arc;

use trunkline_protocol::{Era, Revision};
use trunkline_transport::Url;

use super::handshake::{self, Failure};
use super::open::Open;
use super::probe::{Observation, Verdict, descends, judge_http};
use super::{Attempts, Connected, OverHttp, Plan};
use crate::carrier::{Carrier, ChannelCarrier, Headers, HttpCarrier, Loss, LossKind, SsePair, aside};
use crate::edge::Edge;
use crate::error::Error;

/// What is the same in every attempt.
struct Way<'a> {
    url: &'a Url,
    plan: &'a Plan,
    headers: Headers,
}

/// Connects, by the rules for HTTP: the body of a refusal decides about the era, and what only says that this was a bad
/// moment or the wrong credentials decides nothing.
///
/// # Errors
/// [`Error::Unauthorized`], or [`Error::Unreachable`] with every attempt.
pub(crate) async fn connect(url: &Url, plan: &Plan, attempts: &mut Attempts) -> Result<Connected, Error> {
    let way = Way { url, plan, headers: plan.headers()? };
    match plan.pin {
        _ if plan.over_http == OverHttp::Sse => way.speak_sse(attempts).await,
        Some(pin) if pin.era() == Era::Legacy => way.shake_hands(way.open()?, pin, attempts).await,
        Some(pin) => way.probe(pin, attempts).await,
        None => way.find_out(attempts).await,
    }
}

impl Way<'_> {
    fn open(&self) -> Result<Open, Error> {
        let (sender, receiver) = aside();
        let dialer = self.plan.dialer.clone();
        let carrier = HttpCarrier::new(dialer, self.url, &self.headers, self.plan.http_limits(), sender);
        let carrier = carrier.map_err(|error| Error::Invalid(error.to_string()))?;
        Ok(Open { carrier: Arc::new(carrier), aside: receiver, transport: "streamable-http" })
    }

    /// Connects in whichever era the server turns out to be of, and remembers it.
    async fn find_out(&self, attempts: &mut Attempts) -> Result<Connected, Error> {
        let key = self.url.whole();
        let verdicts = &self.plan.verdicts;
        if self.plan.prefers == Era::Legacy {
            match self.shake_hands(self.open()?, Revision::NEWEST_LEGACY, attempts).await {
                Err(Error::Unreachable(_)) => return self.probe(Revision::NEWEST, attempts).await,
                outcome => return outcome,
            }
        }
        if verdicts.get(&key) == Some(Era::Legacy) {
            match self.shake_hands(self.open()?, Revision::NEWEST_LEGACY, attempts).await {
                // What was known of the server is not true any more.
                Err(Error::Unreachable(_)) => verdicts.forget(&key),
                outcome => return outcome,
            }
        }
        let connected = self.probe(Revision::NEWEST, attempts).await?;
        verdicts.put(&key, connected.described.revision.era());
        Ok(connected)
    }

    /// Asks in a modern revision, and goes on as the answer says; if that revision is pinned, only in it.
    async fn probe(&self, first: Revision, attempts: &mut Attempts) -> Result<Connected, Error> {
        let open = self.open()?;
        let mut asked = first;
        let mut asked_again = false;
        loop {
            let edge = handshake::modern_edge(self.plan, asked);
            let observation = open.observe(self.plan, &edge, attempts).await;
            let verdict = judge_http(&observation, asked);
            if let (Some(pin), Some(other)) = (self.plan.pin, verdict.revision())
                && pin != other
            {
                let cause = format!("the server does not speak {pin}: {}", observation.describe());
                return Err(attempts.unreachable(self.url, cause));
            }
            match (verdict, observation) {
                (Verdict::Modern(revision), Observation::Described(result)) => {
                    let edge =
                        if revision == asked { edge } else { handshake::modern_edge(self.plan, revision) };
                    return open.described(self.url, edge, &result, attempts);
                }
                // A server that lists a revision and then refuses it would be asked for ever.
                (Verdict::Again(revision), _) if !asked_again => (asked, asked_again) = (revision, true),
                (Verdict::Legacy(offered) | Verdict::LegacyAfresh(offered), _) => {
                    return self.shake_hands(open, offered, attempts).await;
                }
                (Verdict::Nothing(why), _) => return Err(attempts.unreachable(self.url, why)),
                (Verdict::Unknown | Verdict::Again(_) | Verdict::Modern(_), observation) => {
                    return Err(self.unknown(&observation, attempts));
                }
            }
        }
    }

    /// Opens a session; where nobody knows of such, HTTP+SSE is what is left.
    async fn shake_hands(
        &self,
        open: Open,
        offered: Revision,
        attempts: &mut Attempts,
    ) -> Result<Connected, Error> {
        let what = format!("initialize at {offered}");
        match self.initialize(&*open.carrier, offered, what, attempts).await {
            Ok((edge, described)) => Ok(open.connected(edge, described)),
            Err(failure) if descends(&failure) && self.plan.over_http == OverHttp::Any => {
                self.descend(offered, &failure, attempts).await
            }
            Err(failure) => Err(self.failed(failure, attempts)),
        }
    }

    /// Connects over HTTP+SSE, because it was said that this is what the server has.
    async fn speak_sse(&self, attempts: &mut Attempts) -> Result<Connected, Error> {
        let offered = self.plan.pin.unwrap_or(Revision::NEWEST_LEGACY);
        if offered.era() == Era::Modern {
            return Err(Error::Invalid(format!("{offered} is not spoken over HTTP+SSE")));
        }
        match self.open_sse(attempts).await {
            Ok(open) => self.begin_session(open, offered, attempts).await,
            Err(loss) => Err(self.failed(Failure::Lost(loss), attempts)),
        }
    }

    /// Tries HTTP+SSE, after a request for a session has failed.
    async fn descend(
        &self,
        offered: Revision,
        before: &Failure,
        attempts: &mut Attempts,
    ) -> Result<Connected, Error> {
        match self.open_sse(attempts).await {
            Ok(open) => self.begin_session(open, offered, attempts).await,
            // That the last thing which was tried fails says less than what was said before.
            Err(loss) => Err(match loss.kind {
                LossKind::Unauthorized { .. } => loss.into(),
                _ => attempts.unreachable(self.url, before.describe()),
            }),
        }
    }

    async fn open_sse(&self, attempts: &mut Attempts) -> Result<Open, Loss> {
        let what = "a stream of HTTP+SSE";
        let limit = self.plan.limits.message_bytes;
        let opened = SsePair::open(self.plan.dialer.clone(), self.url, &self.headers, limit).await;
        let pair = opened.inspect_err(|loss| attempts.note(what, Failure::Lost(loss.clone()).describe()))?;
        attempts.note(what, "opened");
        let (sender, receiver) = aside();
        let carrier = Arc::new(ChannelCarrier::new(pair, sender, self.plan.channel_limits()));
        Ok(Open { carrier, aside: receiver, transport: "sse" })
    }

    async fn begin_session(
        &self,
        open: Open,
        offered: Revision,
        attempts: &mut Attempts,
    ) -> Result<Connected, Error> {
        let what = format!("initialize at {offered} over HTTP+SSE");
        match self.initialize(&*open.carrier, offered, what, attempts).await {
            Ok((edge, described)) => Ok(open.connected(edge, described)),
            Err(failure) => Err(self.failed(failure, attempts)),
        }
    }

    async fn initialize(
        &self,
        carrier: &dyn Carrier,
        offered: Revision,
        what: String,
        attempts: &mut Attempts,
    ) -> Result<(Edge, super::Described), Failure> {
        let outcome = match handshake::initialize(carrier, self.plan, offered).await {
            Ok((_, described)) if self.plan.refuses(described.revision) => {
                carrier.close().await;
                let answered = described.revision;
                Err(Failure::Version(format!("the server does not speak {offered}, but {answered}")))
            }
            outcome => outcome,
        };
        attempts.note(
            what,
            match &outcome {
                Ok((_, described)) => format!("answered with {}", described.revision),
                Err(failure) => failure.describe(),
            },
        );
        outcome
    }

    fn failed(&self, failure: Failure, attempts: &Attempts) -> Error {
        match failure {
            Failure::Lost(Loss { kind: LossKind::Unauthorized { status, challenge }, .. }) => {
                Error::Unauthorized { status, challenge }
            }
            failure => attempts.unreachable(self.url, failure.describe()),
        }
    }

    /// Says that what was seen does not tell how to go on.
    fn unknown(&self, observation: &Observation, attempts: &Attempts) -> Error {
        match observation {
            Observation::Lost(Loss { kind: LossKind::Unauthorized { status, challenge }, .. }) => {
                Error::Unauthorized { status: *status, challenge: challenge.clone() }
            }
            observation => attempts.unreachable(self.url, observation.describe()),
        }
    }
}
