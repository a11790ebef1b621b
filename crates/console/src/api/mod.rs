//! The API of the console: who may use each route, and what it does.

mod hub_routes;
mod routes;

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, COOKIE, HeaderName, SET_COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body::Body as _;
use serde::Deserialize;
use serde_json::json;
use trunkline_hub::events::{EventViewer, HubEvents};
use trunkline_server::http::{HttpService, McpResponseBody, RequestBody};
use trunkline_server::session::Principal;

use self::routes::{ApiAction, ApiRoute};
use crate::console::{Console, ConsoleSource, cookie_name};
use crate::event_lines::event_lines;
use crate::limits::{BODY_TIMEOUT, MAX_BODY_BYTES, SESSION_IDLE};
use crate::origin::{ConsoleScheme, is_cross_site};
use crate::report::ConsoleReport;
use crate::responses::{json_response, refusal, response};
use crate::sessions::{ConsoleRole, ConsoleSession, SessionSecrets};

/// The header with the token that the page keeps in memory.
const HEADER_TOKEN: HeaderName = HeaderName::from_static("x-trunkline-console");

const FILE_NAME: HeaderName = HeaderName::from_static("x-file-name");

/// A request to the API; its origin was checked before.
pub(crate) struct ApiRequest<'a> {
    pub(crate) console: &'a Console,
    pub(crate) guard: &'a HttpService,
    pub(crate) parts: &'a Parts,
}

/// What a page proves to begin a session.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SessionProof {
    /// The token of a one-time link.
    Token(String),
    /// An access token of the hub.
    Bearer(String),
}

/// A request for a link.
#[derive(Deserialize)]
struct LinkRequest {
    role: ConsoleRole,
}

impl ApiRequest<'_> {
    pub(crate) async fn respond(&self, route: &str, body: RequestBody) -> Response<McpResponseBody> {
        if is_cross_site(&self.parts.headers) {
            return refusal(StatusCode::FORBIDDEN, "the request is not one of the console's own page");
        }
        if (&self.parts.method, route) == (&Method::POST, "session") {
            return self.begin_session(body).await;
        }
        let Some(session) = self.session() else {
            return refusal(
                StatusCode::UNAUTHORIZED,
                "the request has no session; open a link of `trunkline console`",
            );
        };
        let found = ApiRoute::find(&self.parts.method, route);
        let action = found.and_then(|route| route.access.check(&session).map(|()| route.action));
        let action = match action {
            Ok(action) => action,
            Err((status, reason)) => return refusal(status, reason),
        };
        match action {
            ApiAction::Report => self.report(&session),
            ApiAction::Events => self.events(session),
            ApiAction::Record => self.record(),
            ApiAction::MakeLink => self.make_link(body).await,
            ApiAction::EndSession => self.end_session(),
            ApiAction::MakeRequest => self.make_request(&session, body).await,
            ApiAction::Questions => self.questions(),
            ApiAction::Answer => self.answer(body).await,
            ApiAction::Figures => self.figures(),
            ApiAction::Server => self.server(),
            ApiAction::ChangeServer => self.change_server(body).await,
            ApiAction::Costs => self.costs(),
            ApiAction::ClientSessions => self.list_sessions().await,
            ApiAction::EndClientSession => self.end_client_session(body).await,
        }
    }

    /// Returns the session of the request, by its cookie and its header token.
    fn session(&self) -> Option<ConsoleSession> {
        let token = self.parts.headers.get(HEADER_TOKEN)?.to_str().ok()?;
        self.console.inner.sessions.find(self.cookie()?, token)
    }

    fn cookie(&self) -> Option<&str> {
        find_cookie(&self.parts.headers, &cookie_name(self.parts))
    }

    /// Exchanges a proof for a session.
    async fn begin_session(&self, body: RequestBody) -> Response<McpResponseBody> {
        let Some(proof) = read_json(body).await else {
            return refusal(StatusCode::BAD_REQUEST, "the body is not a token");
        };
        let begun = match proof {
            SessionProof::Token(token) => {
                let role = self.console.inner.links.take(&token);
                role.and_then(|role| self.console.inner.sessions.begin(role, EventViewer::Operator, None))
            }
            SessionProof::Bearer(token) => self.sign_in(&token).await,
        };
        match begun {
            Some(secrets) => self.session_response(&secrets),
            None => {
                tracing::warn!("the console refused a link or an access token");
                refusal(
                    StatusCode::UNAUTHORIZED,
                    "the link was opened before, has expired, or is not of this hub",
                )
            }
        }
    }

    /// Begins a session of the user of an access token, who sees its own calls and changes nothing.
    async fn sign_in(&self, token: &str) -> Option<SessionSecrets> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.trim())).ok()?;
        value.set_sensitive(true);
        let mut parts = self.parts.clone();
        parts.headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        let sender = self.guard.authenticate(&parts).await.ok()?;
        // Where nothing is authenticated, every token is accepted, and proves nothing.
        let Principal::Named(_) = &sender.principal else { return None };
        let viewer = EventViewer::Principal(sender.principal);
        self.console.inner.sessions.begin(ConsoleRole::Viewer, viewer, sender.grant)
    }

    fn session_response(&self, secrets: &SessionSecrets) -> Response<McpResponseBody> {
        let mut response = json_response(&json!({ "header_token": secrets.header_token }));
        let secure = if self.console.scheme() == ConsoleScheme::Https { "; Secure" } else { "" };
        let cookie = format!(
            "{}={}; Path=/console; Max-Age={}; HttpOnly; SameSite=Strict{secure}",
            cookie_name(self.parts),
            secrets.cookie,
            SESSION_IDLE.as_secs()
        );
        if let Ok(mut value) = HeaderValue::try_from(cookie) {
            value.set_sensitive(true);
            response.headers_mut().insert(SET_COOKIE, value);
        }
        response
    }

    fn end_session(&self) -> Response<McpResponseBody> {
        if let Some(cookie) = self.cookie() {
            self.console.inner.sessions.end(cookie);
        }
        json_response(&json!({}))
    }

    fn report(&self, session: &ConsoleSession) -> Response<McpResponseBody> {
        let inner = &self.console.inner;
        let sees_all = matches!(session.viewer, EventViewer::Operator);
        // Users see neither reasons nor commands of servers.
        let servers = if sees_all { inner.options.reports.servers() } else { Vec::new() };
        json_response(&ConsoleReport {
            version: inner.options.version,
            endpoint: inner.endpoint.get().map_or("", String::as_str),
            role: session.role,
            sees_all,
            live: matches!(inner.options.source, ConsoleSource::Live(_)),
            servers,
        })
    }

    /// Streams the events, from the oldest that is kept or after the one with the number `after`.
    fn events(&self, session: ConsoleSession) -> Response<McpResponseBody> {
        let inner = &self.console.inner;
        let ConsoleSource::Live(events) = &inner.options.source else {
            return refusal(StatusCode::NOT_FOUND, "this console shows a record file");
        };
        let Some(after) = self.after(events) else {
            return refusal(StatusCode::BAD_REQUEST, "`after` is not a number");
        };
        let streams = match session.viewer {
            EventViewer::Operator => &inner.streams,
            EventViewer::Principal(_) => &inner.user_streams,
        };
        let Some(permit) = streams.admit() else {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open");
        };
        let subscription = events.subscribe(session.viewer.clone(), Some(after));
        let lines = event_lines(subscription, session, inner.options.shutdown.clone(), permit);
        response(StatusCode::OK, "application/x-ndjson", McpResponseBody::streaming(lines))
    }

    /// Returns a parameter of the query, decoded.
    fn query(&self, name: &str) -> Option<String> {
        let query = self.parts.uri.query()?;
        let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        percent_decoded(found)
    }

    fn after(&self, events: &HubEvents) -> Option<u64> {
        match self.parts.uri.query() {
            None => Some(events.oldest()),
            Some(query) => query.strip_prefix("after=")?.parse().ok(),
        }
    }

    fn record(&self) -> Response<McpResponseBody> {
        let ConsoleSource::Record { name, content } = &self.console.inner.options.source else {
            return refusal(StatusCode::NOT_FOUND, "this console shows a hub");
        };
        let body = McpResponseBody::whole(content.clone());
        let mut response = response(StatusCode::OK, "application/x-ndjson", body);
        if let Ok(name) = HeaderValue::try_from(percent_encoded(name)) {
            response.headers_mut().insert(FILE_NAME, name);
        }
        response
    }

    /// Makes a link for another browser of this machine.
    async fn make_link(&self, body: RequestBody) -> Response<McpResponseBody> {
        let Some(LinkRequest { role }) = read_json(body).await else {
            return refusal(StatusCode::BAD_REQUEST, "the body names no role");
        };
        match self.console.make_link(role) {
            Some(url) => json_response(&json!({ "url": url })),
            None => refusal(StatusCode::SERVICE_UNAVAILABLE, "no link can be made"),
        }
    }
}

/// Finds a cookie; `None` if there is none, or more than one.
fn find_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let texts = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
    let mut found = texts
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='));
    match (found.next(), found.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

/// Reads a body of JSON; `None` if it is too long, too slow, or something else.
async fn read_json<T: for<'de> Deserialize<'de>>(body: RequestBody) -> Option<T> {
    serde_json::from_slice(&read_body(body, MAX_BODY_BYTES).await?).ok()
}

/// Reads a body; `None` if it is too long or too slow.
pub(crate) async fn read_body(mut body: RequestBody, most: usize) -> Option<Bytes> {
    let mut read = BytesMut::new();
    let reading = async {
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let data = frame.ok()?.into_data().ok()?;
            if read.len() + data.len() > most {
                return None;
            }
            read.extend_from_slice(&data);
        }
        Some(read.freeze())
    };
    tokio::time::timeout(BODY_TIMEOUT, reading).await.ok()?
}

/// Encodes a file name for a header.
fn percent_encoded(name: &str) -> String {
    use std::fmt::Write as _;
    name.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

/// Decodes a parameter of a query; `None` if it is not UTF-8 or malformed.
fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_found_by_its_whole_name_and_only_once() {
        for (cookies, expected) in [
            ("trunkline_console_1=a", Some("a")),
            ("x=1; trunkline_console_1=a; y=2", Some("a")),
            ("trunkline_console_12=a", None),
            ("trunkline_console_1=a; trunkline_console_1=b", None),
        ] {
            let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(cookies))]);
            assert_eq!(find_cookie(&headers, "trunkline_console_1"), expected, "{cookies}");
        }
    }

    #[test]
    fn file_names_are_encoded_for_a_header() {
        for (text, expected) in [
            ("a%20b+c", Some("a b c")),
            ("%C3%A9", Some("\u{e9}")),
            ("%", None),
            ("%4", None),
            ("%zz", None),
            ("%ff", None),
        ] {
            assert_eq!(percent_decoded(text).as_deref(), expected, "{text}");
        }
        assert_eq!(percent_encoded("a b\u{e9}\r\n.jsonl"), "a%20b%C3%A9%0D%0A.jsonl");
    }
}
