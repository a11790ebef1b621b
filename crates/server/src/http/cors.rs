//! CORS: the headers that pages of allowed origins may send and read.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::allow_list::AllowList;
use super::body::McpResponseBody;
use crate::env::EnvSources;

/// The prefix of the headers that mirror a tool's arguments.
const PARAM_PREFIX: &str = "mcp-param-";

/// Answers a CORS preflight request; the page's origin was checked before.
pub(super) fn preflight(parts: &Parts, env: &EnvSources) -> Response<McpResponseBody> {
    let mut response = Response::new(McpResponseBody::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE, OPTIONS"));
    if parts.headers.contains_key(ORIGIN) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET, DELETE"));
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers(parts, env));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    }
    response
}

/// Lets a page read the response to a request of its origin, which was checked before.
pub(super) fn allow_origin(parts: &Parts, response: &mut Response<McpResponseBody>) {
    if let Some(origin) = parts.headers.get(ORIGIN) {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        let exposed = HeaderValue::from_static("WWW-Authenticate, Mcp-Session-Id, DPoP-Nonce");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}

/// Lets a page send its cookie, if its origin is on the list itself: pages of all origins may be allowed to call, but
/// not with the state of a user.
pub(super) fn allow_credentials(
    parts: &Parts,
    origins: &AllowList,
    response: &mut Response<McpResponseBody>,
) {
    let origin = parts.headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    if origin.is_some_and(|origin| origins.lists_origin(origin)) {
        response.headers_mut().insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
}

/// Lists the headers that a page may send: those of the protocol, and of the headers in the preflight request those
/// that mirror a tool's arguments, since only the page knows their names, and those with a variable that the operator
/// allows.
fn allowed_headers(parts: &Parts, env: &EnvSources) -> HeaderValue {
    const OURS: &str = "Content-Type, Accept, Authorization, DPoP, MCP-Protocol-Version, Mcp-Session-Id, Last-Event-ID, \
                        Mcp-Method, Mcp-Name";
    let requested = parts.headers.get(ACCESS_CONTROL_REQUEST_HEADERS).and_then(|value| value.to_str().ok());
    let names =
        requested.unwrap_or_default().split(',').filter_map(|name| name.trim().parse::<HeaderName>().ok());
    let is_param = |name: &str| name.len() > PARAM_PREFIX.len() && name.starts_with(PARAM_PREFIX);
    let mut allowed = OURS.to_owned();
    for name in names.filter(|name| is_param(name.as_str()) || env.allows_header(name)) {
        allowed.push_str(", ");
        allowed.push_str(name.as_str());
    }
    HeaderValue::from_str(&allowed).unwrap_or_else(|_| HeaderValue::from_static(OURS))
}
