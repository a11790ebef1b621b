//! HTTP+SSE, the transport of revision 2024-11-05: a stream that says everything, and a path that takes everything.
//!
//! One stream is one channel. Its response body owns the driver of the channel and polls it, so that there is no task to
//! lose: when the stream ends, for whatever reason, the session ends with it and its calls are cancelled.

mod inbox;
mod stream;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use dashmap::DashMap;
use http::{Method, Response};
use http_body::Body;
use trunkline_protocol::envelope::{self, Malformed};
use trunkline_protocol::{Id, Refusal, Revision};
use trunkline_session::{Principal, SessionId};

use self::inbox::{Full, Inbox};
use self::stream::SessionStream;
use super::arrival::RequestHead;
use super::body::{self, ResponseBody};
use super::endpoint::{Answered, Inner, accepted_with, streamed};
use super::heads::Heads;
use super::options::SsePaths;
use super::refused::{named, refused};
use crate::channel::ChannelServer;
use crate::tally::Tally;

/// The member of the query that names the stream to which a message belongs.
const SESSION: &str = "sessionId";

/// The streams of one endpoint.
pub(super) struct SseStreams {
    open: Arc<DashMap<SessionId, Entry>>,
    tally: Tally,
}

/// Where the messages to one stream go.
struct Entry {
    principal: Principal,
    inbox: Arc<Inbox>,
    spoken: Arc<Spoken>,
}

/// The revision that is spoken on a stream, for those who post to it.
struct Spoken(AtomicU8);

impl Spoken {
    /// Until a handshake says otherwise it is the revision whose transport this is.
    const FIRST: Revision = Revision::V2024_11_05;

    fn set(&self, revision: Revision) {
        self.0.store(revision as u8, Ordering::Relaxed);
    }

    fn get(&self) -> Revision {
        let spoken = usize::from(self.0.load(Ordering::Relaxed));
        Revision::ALL.get(spoken).copied().unwrap_or(Self::FIRST)
    }
}

impl SseStreams {
    pub(super) fn new(tally: Tally) -> Self {
        Self { open: Arc::default(), tally }
    }

    /// Returns how many streams are open.
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// Finds the inbox of a stream; that of another principal is not found.
    fn find(&self, id: SessionId, principal: &Principal) -> Option<Arc<Inbox>> {
        let entry = self.open.get(&id)?;
        (entry.principal == *principal).then(|| entry.inbox.clone())
    }

    /// Returns the revision that is spoken on the stream to which a request belongs.
    fn spoken(&self, query: &str, principal: &Principal) -> Option<Revision> {
        let entry = self.open.get(&named_session(query).ok()??)?;
        (entry.principal == *principal).then(|| entry.spoken.get())
    }
}

/// Takes a stream out of the table when it ends.
struct Listed {
    open: Arc<DashMap<SessionId, Entry>>,
    id: SessionId,
    spoken: Arc<Spoken>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.open.remove(&self.id);
    }
}

impl Inner {
    /// Answers a request to one of the two paths; `Host`, `Origin` and token were checked before.
    pub(super) async fn sse_pair<B>(
        self: &Arc<Self>,
        paths: &SsePaths,
        head: &RequestHead,
        heads: &Heads<'_>,
        body: B,
        principal: Principal,
    ) -> Response<ResponseBody>
    where
        B: Body<Data = Bytes> + Send,
    {
        let cookie = self.cookie(head.parts(), &principal);
        let answered = match (head.path() == paths.stream, head.method()) {
            (true, &Method::GET) => {
                self.open_stream(paths, head, heads, &principal, cookie.as_ref().map(|c| c.bag))
            }
            (false, &Method::POST) => self.take_message(head, heads, body, &principal).await,
            _ => Err((Refusal::NOT_ALLOWED, None)),
        };
        let mut response = answered.unwrap_or_else(|(refusal, id)| {
            let spoken = self.sse.spoken(head.query().unwrap_or_default(), &principal);
            let spoken = spoken.or_else(|| named(heads)).unwrap_or(Spoken::FIRST);
            refused(&refusal, id.as_ref(), spoken)
        });
        if let Some(cookie) = cookie {
            cookie.set(response.headers_mut());
        }
        response
    }

    fn open_stream(
        self: &Arc<Self>,
        paths: &SsePaths,
        head: &RequestHead,
        heads: &Heads<'_>,
        principal: &Principal,
        bag: Option<SessionId>,
    ) -> Answered {
        let fail = |refusal| (refusal, None);
        if !heads.accepts().stream {
            return Err(fail(Refusal::NOT_ACCEPTABLE.because("this path needs Accept: text/event-stream")));
        }
        if self.core.shutdown.is_draining() {
            return Err(fail(Refusal::SHUTTING_DOWN));
        }
        let env = self.env(head).map_err(fail)?;
        let share = self.sse.tally.take(principal).ok_or_else(|| fail(Refusal::TOO_MANY))?;
        let id = SessionId::random();
        let (inbox, channel) = inbox::open(self.core.limits.message_bytes);
        let spoken = Arc::new(Spoken(AtomicU8::new(Spoken::FIRST as u8)));
        self.sse.open.insert(id, Entry { principal: principal.clone(), inbox, spoken: spoken.clone() });
        let listed = Listed { open: self.sse.open.clone(), id, spoken };
        let server = ChannelServer::new(self.core.clone(), principal.clone(), channel);
        let server = server.with_bag(bag).with_env(env).owned().counted_below();
        // A path alone: what the client is told must not depend on a name that it sent.
        let endpoint = format!("{}?{SESSION}={id}", paths.messages);
        let keep_alive = self.core.limits.keep_alive;
        Ok(streamed(SessionStream::new(server, &endpoint, keep_alive, (listed, share))))
    }

    async fn take_message<B>(
        self: &Arc<Self>,
        head: &RequestHead,
        heads: &Heads<'_>,
        body: B,
        principal: &Principal,
    ) -> Answered
    where
        B: Body<Data = Bytes> + Send,
    {
        let fail = |refusal| (refusal, None);
        heads.check_body().map_err(fail)?;
        let named = named_session(head.query().unwrap_or_default()).map_err(fail)?;
        let inbox = named.and_then(|id| self.sse.find(id, principal)).ok_or_else(|| fail(no_stream()))?;
        let limits = &self.core.limits;
        let (bytes, reserved) = body::read(body, &self.core).await.map_err(fail)?;
        // The stream would tell too, but not which of the messages was meant.
        let id = legible(bytes.clone(), limits.bounds)?;
        match tokio::time::timeout(limits.body_within, inbox.put(bytes, reserved)).await {
            Ok(Ok(())) => Ok(accepted_with("Accepted")),
            Ok(Err(Full::Closed)) => Err((no_stream(), id)),
            Err(_) => Err((Refusal::TOO_MANY.because("the stream does not read its messages"), id)),
        }
    }
}

fn no_stream() -> Refusal {
    Refusal::SESSION_NOT_FOUND.because("there is no such stream: open a new one")
}

/// Reads the id in a query; `None` if it cannot be one of ours.
///
/// # Errors
/// The query names no session, or more than one.
fn named_session(query: &str) -> Result<Option<SessionId>, Refusal> {
    let mut named = query.split('&').filter_map(|member| member.strip_prefix(SESSION)?.strip_prefix('='));
    match (named.next(), named.next()) {
        (Some(id), None) => Ok(SessionId::parse(id.as_bytes())),
        _ => Err(Refusal::INVALID_REQUEST
            .because("the query must have one `sessionId`, as in the event `endpoint` of the stream")),
    }
}

/// Checks that a message can be read; returns its id if it is a request.
fn legible(bytes: Bytes, bounds: envelope::Bounds) -> Result<Option<Id>, (Refusal, Option<Id>)> {
    match envelope::read(bytes, bounds) {
        Err(Malformed { refusal, id }) => Err((refusal, id)),
        Ok(envelope::Incoming::One(message)) => Ok(super::endpoint::id_of(&message).cloned()),
        Ok(envelope::Incoming::Batch(_)) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_one_session_or_the_request_is_refused() {
        let id = "0123456789abcdef0123456789abcdef";
        for (query, expected) in [
            (format!("sessionId={id}"), Ok(true)),
            (format!("a=b&sessionId={id}&c"), Ok(true)),
            ("sessionId=evil".to_owned(), Ok(false)),
            (format!("sessionId={id}0"), Ok(false)),
            (format!("sessionId={}", id.to_uppercase()), Ok(false)),
            ("sessionId=".to_owned(), Ok(false)),
            (String::new(), Err(())),
            (format!("sessionid={id}"), Err(())),
            (format!("xsessionId={id}"), Err(())),
            (format!("sessionId={id}&sessionId={id}"), Err(())),
        ] {
            let found = named_session(&query).map(|id| id.is_some()).map_err(|_| ());
            assert_eq!(found, expected, "{query}");
        }
    }
}
