//! Responses of the console: each with the headers that keep the page to itself.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use trunkline_server::http::McpResponseBody;

/// Nothing but the page's own files is loaded, no text ever becomes markup or code (trusted types), and no other page frames it.
/// Pictures and sound of results are shown from bytes that the page has (`blob:`), under types that it chooses.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:; \
     connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (CONTENT_SECURITY_POLICY, PAGE_POLICY),
    (CACHE_CONTROL, "no-store"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// Makes a response with a body of a type.
pub(crate) fn response(
    status: StatusCode,
    content_type: &'static str,
    body: McpResponseBody,
) -> Response<McpResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(crate) fn json_response(content: &impl Serialize) -> Response<McpResponseBody> {
    let body = serde_json::to_vec(content).unwrap_or_default();
    response(StatusCode::OK, "application/json", McpResponseBody::whole(body))
}

/// Makes a response that tells a program why its request is refused.
pub(crate) fn refusal(status: StatusCode, reason: &str) -> Response<McpResponseBody> {
    let body = json!({ "error": reason }).to_string();
    response(status, "application/json", McpResponseBody::whole(body))
}
