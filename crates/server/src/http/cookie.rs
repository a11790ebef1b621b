use std::time::Duration;

use bytes::Bytes;
use http::header::{COOKIE, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use sha2::{Digest as _, Sha256};
use trunkline_protocol::Method;
use trunkline_session::{Principal, SessionId};

use super::endpoint::HttpServiceInner;
use crate::input_round::{SealedContinuation, StateBinding};
use crate::server_core::now;

/// The name of the cookie.
const NAME: &str = "mcp_session_id";

/// The session cookie of HTTP+SSE clients.
///
/// The cookie names the state that may be kept for a client between its calls,
/// [`Caller::state_id`](crate::Caller::state_id), and nothing else: it is not a credential, and it never restores a
/// session. Its value is encrypted under the server's state keys and bound to the principal, so that nothing is
/// stored for it, and a value that this server did not make for this caller is replaced by a new one.
#[derive(Clone, Copy, Debug)]
pub struct CookieSessions {
    /// How long a cookie lasts from its first use. Default 24 hours.
    pub max_age: Duration,
    /// Whether the cookie is for HTTPS alone, as behind a proxy; it always is where [`HttpServerOptions::tls`] is
    /// set.
    /// Default no.
    ///
    /// [`HttpServerOptions::tls`]: super::HttpServerOptions::tls
    pub secure: bool,
}

impl Default for CookieSessions {
    fn default() -> Self {
        Self { max_age: Duration::from_secs(24 * 60 * 60), secure: false }
    }
}

/// The cookie of one request.
pub(super) struct SessionCookie {
    pub(super) state_id: SessionId,
    header: HeaderValue,
}

impl SessionCookie {
    pub(super) fn set(self, headers: &mut HeaderMap) {
        headers.append(SET_COOKIE, self.header);
    }
}

impl HttpServiceInner {
    /// Reads the cookie of a request, or makes one; `None` where there are none.
    pub(super) fn cookie(&self, parts: &Parts, principal: &Principal) -> Option<SessionCookie> {
        let options = self.options.cookie_sessions?;
        let digest = Sha256::digest(b"trunkline cookie").into();
        // No state is ever encrypted for a ping, so that a cookie cannot be mistaken for one.
        let binding =
            StateBinding { principal: principal.clone(), method: Method::Ping, params_digest: digest };
        let known = find_cookie(&parts.headers).and_then(|value| {
            match self.core.sealer.open(value, &binding, now())?.1 {
                SealedContinuation::Portable(id) => Some((SessionId::parse(&id)?, value.to_owned())),
                SealedContinuation::Suspended(..) => None,
            }
        });
        let (state_id, value) = match known {
            Some(known) => known,
            None => {
                let state_id = SessionId::random();
                let then = SealedContinuation::Portable(Bytes::from(state_id.to_string()));
                let expires = now().plus(options.max_age);
                (state_id, self.core.sealer.seal(&binding, 0, expires, &then)?)
            }
        };
        let secure = if options.secure || self.options.tls.is_some() { "; Secure" } else { "" };
        let age = options.max_age.as_secs();
        let header = format!("{NAME}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
        let mut header = HeaderValue::from_str(&header).ok()?;
        header.set_sensitive(true);
        Some(SessionCookie { state_id, header })
    }
}

/// Finds the cookie among those of a request; `None` if there is none, or more than one.
fn find_cookie(headers: &HeaderMap) -> Option<&str> {
    let texts = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
    let mut ours = texts
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='));
    match (ours.next(), ours.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_session_cookie_is_ignored() {
        for (cookies, expected) in [
            (&["mcp_session_id=a"][..], Some("a")),
            (&["x=1; mcp_session_id=a; y=2"], Some("a")),
            (&["x=1", "mcp_session_id=a"], Some("a")),
            (&["mcp_session_id=a; mcp_session_id=b"], None),
            (&["xmcp_session_id=a"], None),
            (&["mcp_session_id"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for cookie in cookies {
                headers.append(COOKIE, cookie.parse().unwrap());
            }
            assert_eq!(find_cookie(&headers), expected, "{cookies:?}");
        }
    }
}
