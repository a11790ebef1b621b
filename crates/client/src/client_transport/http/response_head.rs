//! Classifies a response by its head, before its body is read.

use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use trunkline_protocol::shorten;
use trunkline_transport::http::ResponseHeaders;

use super::credential_echo::without_credentials;
use crate::client_transport::{RequestDelivery, TransportFailure, TransportFailureKind};

/// The longest `WWW-Authenticate` challenge that is stored, in characters.
const MAX_CHALLENGE_CHARS: usize = 512;

/// The kind of a response, by its head.
#[derive(Debug)]
pub(super) enum ResponseKind {
    /// The body is the response.
    Json,
    /// The body is an event stream that contains the response.
    Events,
    /// The body may be a JSON-RPC error that answers the request; if it is not, the request failed like this. With
    /// whether the request had a session id.
    ErrorStatus(TransportFailure, InSession),
    /// The request failed, whatever the body is.
    Failed(TransportFailure),
}

/// Whether a request had a session id; the session may be lost then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InSession {
    Yes,
    No,
}

/// The media types of a response body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyMedia {
    Json,
    Events,
    Other,
}

/// Parses `Content-Type`, without its parameters.
pub(super) fn body_media(headers: &ResponseHeaders) -> BodyMedia {
    let kind = headers.get(&CONTENT_TYPE).unwrap_or_default();
    // Fast path: what nearly every server sends.
    if kind == b"application/json" {
        return BodyMedia::Json;
    }
    let kind = headers.get_text(&CONTENT_TYPE).unwrap_or_default();
    match kind.split(';').next().unwrap_or_default().trim() {
        kind if kind.eq_ignore_ascii_case("application/json") => BodyMedia::Json,
        kind if kind.eq_ignore_ascii_case("text/event-stream") => BodyMedia::Events,
        _ => BodyMedia::Other,
    }
}

/// Classifies the head of the response to a request.
pub(super) fn classify_response(
    status: StatusCode,
    headers: &ResponseHeaders,
    session: InSession,
) -> ResponseKind {
    if let Some(failure) = classify_status(status, headers, session) {
        return match failure.kind {
            TransportFailureKind::Status { .. } if !status.is_redirection() => {
                ResponseKind::ErrorStatus(failure, session)
            }
            _ => ResponseKind::Failed(failure),
        };
    }
    if headers.get(&CONTENT_ENCODING).is_some_and(|encoding| encoding != b"identity") {
        return ResponseKind::Failed(malformed(
            "the server compressed its response, which was not requested".to_owned(),
        ));
    }
    match body_media(headers) {
        BodyMedia::Json => ResponseKind::Json,
        BodyMedia::Events => ResponseKind::Events,
        BodyMedia::Other if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT => {
            ResponseKind::Failed(malformed(format!(
                "the server took the request and did not answer it (status {})",
                status.as_u16()
            )))
        }
        BodyMedia::Other => ResponseKind::Failed(malformed(format!(
            "the server answered with {}, neither JSON nor a stream of events",
            content_type(headers)
        ))),
    }
}

/// Classifies the status of any response; `None` for success.
pub(super) fn classify_status(
    status: StatusCode,
    headers: &ResponseHeaders,
    session: InSession,
) -> Option<TransportFailure> {
    if status.is_success() {
        return None;
    }
    let number = status.as_u16();
    let kind = match status {
        StatusCode::NOT_FOUND if session == InSession::Yes => TransportFailureKind::SessionGone,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            TransportFailureKind::Unauthorized { status: number, challenge: challenge(headers) }
        }
        _ if status.is_redirection() => {
            TransportFailureKind::Status { status: number, excerpt: redirect_message(headers) }
        }
        _ => TransportFailureKind::Status { status: number, excerpt: String::new() },
    };
    Some(TransportFailure { delivery: delivery_status(status), kind })
}

/// Returns the failure for an unexpected response.
pub(crate) fn status_failure(status: StatusCode, headers: &ResponseHeaders, body: &[u8]) -> TransportFailure {
    let unwanted = || TransportFailure {
        delivery: RequestDelivery::NotSent,
        kind: TransportFailureKind::Status { status: status.as_u16(), excerpt: String::new() },
    };
    with_excerpt(
        classify_status(status, headers, InSession::No).unwrap_or_else(unwanted),
        body,
        InSession::No,
    )
}

/// Adds the beginning of the body to a failure, for the error message.
pub(super) fn with_excerpt(
    mut failure: TransportFailure,
    body: &[u8],
    session: InSession,
) -> TransportFailure {
    if let TransportFailureKind::Status { status, excerpt } = &mut failure.kind {
        if *status == 400 && session == InSession::Yes && is_about_session(body) {
            failure.kind = TransportFailureKind::SessionGone;
        } else if excerpt.is_empty() {
            *excerpt = self::excerpt(body);
        }
    }
    failure
}

/// Reports whether an error body refers to the session. Many restarted servers reject an unknown session with 400
/// instead of 404, like the sample servers that they were derived from.
fn is_about_session(body: &[u8]) -> bool {
    let words = String::from_utf8_lossy(body).to_ascii_lowercase();
    words.contains("session") || words.contains("not initialized")
}

/// Returns whether a status proves that the server did not act on the request. In doubt it does not.
fn delivery_status(status: StatusCode) -> RequestDelivery {
    match status.as_u16() {
        301 | 307 | 308 | 400 | 401 | 403 | 404 | 405 | 406 | 411 | 413 | 414 | 415 | 421 | 429 | 431 => {
            RequestDelivery::NotSent
        }
        _ => RequestDelivery::MaybeSent,
    }
}

fn redirect_message(headers: &ResponseHeaders) -> String {
    match headers.get(&LOCATION).map(printable_text) {
        Some(location) => {
            format!("the server redirects to `{}`; if that is right, connect to it", shorten(&location))
        }
        None => "the server redirects, and does not say where to".to_owned(),
    }
}

fn challenge(headers: &ResponseHeaders) -> Option<String> {
    let challenge = without_credentials(&printable_text(headers.get(&WWW_AUTHENTICATE)?));
    Some(match challenge.char_indices().nth(MAX_CHALLENGE_CHARS).and_then(|(end, _)| challenge.get(..end)) {
        Some(beginning) => format!("{beginning}…"),
        None => challenge,
    })
}

fn content_type(headers: &ResponseHeaders) -> String {
    match headers.get(&CONTENT_TYPE).map(printable_text) {
        Some(kind) => format!("`{}`", shorten(&kind)),
        None => "no content type".to_owned(),
    }
}

fn printable_text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).replace(char::is_control, " ")
}

/// Returns the beginning of a body on one line, for error messages.
pub(super) fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
    shorten(&without_credentials(&words.join(" ")))
}

pub(super) fn malformed(problem: String) -> TransportFailure {
    TransportFailure { delivery: RequestDelivery::MaybeSent, kind: TransportFailureKind::Malformed(problem) }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> ResponseHeaders {
        let pairs =
            pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        (&pairs.collect::<HeaderMap>()).into()
    }

    const JSON: (&str, &str) = ("content-type", "application/json");
    const EVENTS: (&str, &str) = ("content-type", "text/event-stream");
    const HTML: (&str, &str) = ("content-type", "text/html");

    #[test]
    fn response_head_determines_the_response_kind() {
        type HeaderPair = (&'static str, &'static str);
        type ResponseHeadCase = (u16, &'static [HeaderPair], InSession, &'static str);
        let table: &[ResponseHeadCase] = &[
            (200, &[JSON], InSession::Yes, "Json"),
            (200, &[EVENTS], InSession::No, "Events"),
            (200, &[HTML], InSession::No, "answered with `text/html`, neither"),
            (200, &[], InSession::No, "answered with no content type, neither"),
            (200, &[JSON, ("content-encoding", "gzip")], InSession::No, "compressed"),
            (200, &[JSON, ("content-encoding", "identity")], InSession::No, "Json"),
            (202, &[], InSession::Yes, "did not answer it (status 202)"),
            (204, &[], InSession::Yes, "did not answer it (status 204)"),
            (
                400,
                &[JSON],
                InSession::No,
                "ErrorStatus(TransportFailure { delivery: NotSent, kind: Status { status: 400",
            ),
            (
                401,
                &[("www-authenticate", "Bearer x=\"y\"")],
                InSession::Yes,
                "challenge: Some(\"Bearer x=\\\"y\\\"\")",
            ),
            (
                403,
                &[],
                InSession::No,
                "Failed(TransportFailure { delivery: NotSent, kind: Unauthorized { status: 403, challenge: None",
            ),
            (
                404,
                &[JSON],
                InSession::Yes,
                "Failed(TransportFailure { delivery: NotSent, kind: SessionGone })",
            ),
            (
                404,
                &[JSON],
                InSession::No,
                "ErrorStatus(TransportFailure { delivery: NotSent, kind: Status { status: 404",
            ),
            (
                307,
                &[("location", "https://elsewhere.example/")],
                InSession::Yes,
                "redirects to `https://elsewhere.example/`",
            ),
            (308, &[], InSession::No, "does not say where to"),
            (301, &[], InSession::No, "delivery: NotSent"),
            (303, &[], InSession::No, "delivery: MaybeSent"),
            (408, &[], InSession::No, "ErrorStatus(TransportFailure { delivery: MaybeSent"),
            (429, &[], InSession::No, "ErrorStatus(TransportFailure { delivery: NotSent"),
            (
                500,
                &[JSON],
                InSession::No,
                "ErrorStatus(TransportFailure { delivery: MaybeSent, kind: Status { status: 500",
            ),
            (503, &[], InSession::Yes, "ErrorStatus(TransportFailure { delivery: MaybeSent"),
        ];
        for (status, pairs, session, expected) in table {
            let answer = classify_response(StatusCode::from_u16(*status).unwrap(), &headers(pairs), *session);
            assert!(format!("{answer:?}").contains(expected), "{status} {pairs:?}: {answer:?}");
        }
    }

    #[test]
    fn status_400_about_the_session_means_session_gone() {
        let bad = || TransportFailure {
            delivery: RequestDelivery::NotSent,
            kind: TransportFailureKind::Status { status: 400, excerpt: String::new() },
        };
        for (body, session, is_gone) in [
            (r#"{"error":{"message":"Bad Request: No valid session ID provided"}}"#, InSession::Yes, true),
            ("Invalid or missing session ID", InSession::Yes, true),
            (r#"{"error":{"message":"Bad Request: Server not initialized"}}"#, InSession::Yes, true),
            ("Bad Request", InSession::Yes, false),
            ("No valid session ID provided", InSession::No, false),
        ] {
            let failure = with_excerpt(bad(), body.as_bytes(), session);
            assert_eq!(matches!(failure.kind, TransportFailureKind::SessionGone), is_gone, "{body}");
        }
        let failed = TransportFailure {
            kind: TransportFailureKind::Status { status: 500, excerpt: String::new() },
            ..bad()
        };
        let kept = with_excerpt(failed, b"session", InSession::Yes).kind;
        assert!(!matches!(kept, TransportFailureKind::SessionGone), "{kept:?}");
    }

    #[test]
    fn server_texts_are_truncated_and_stripped_of_control_characters() {
        let long = HeaderValue::from_str(&"x".repeat(100_000)).unwrap();
        let map = HeaderMap::from_iter([(WWW_AUTHENTICATE, long)]);
        assert_eq!(challenge(&(&map).into()).unwrap().chars().count(), MAX_CHALLENGE_CHARS + 1);
        assert_eq!(excerpt(b"<html>\r\n\x1b[31m  hi\xff</html>"), "<html> [31m hi\u{fffd}</html>");
        assert_eq!(
            excerpt(b"headers: Authorization: Bearer sentinel-0815"),
            "headers: Authorization: Bearer …"
        );
        assert!(excerpt("é".repeat(100_000).as_bytes()).chars().count() < 200);
    }

    #[test]
    fn body_media_ignores_content_type_parameters() {
        for (value, expected) in [
            ("application/json", BodyMedia::Json),
            ("Application/JSON; charset=utf-8", BodyMedia::Json),
            ("text/event-stream;charset=utf-8", BodyMedia::Events),
            ("application/json-seq", BodyMedia::Other),
            ("text/html", BodyMedia::Other),
            ("", BodyMedia::Other),
        ] {
            let map = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(body_media(&(&map).into()), expected, "{value}");
        }
        assert_eq!(body_media(&ResponseHeaders::default()), BodyMedia::Other);
    }
}
