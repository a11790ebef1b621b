//! Interprets the response to `server/discover`: a decision table without I/O.

use trunkline_protocol::{Era, RawJson, Revision, error_code};

use super::attempt::UNANSWERED;
use super::handshake::HandshakeError;
use crate::client_transport::{FailureCause, TransportFailure, TransportFailureKind};
use crate::error::ErrorResponse;

/// The outcome of `server/discover` in a modern revision.
#[derive(Clone, Debug)]
pub(crate) enum DiscoverOutcome {
    /// The server described itself.
    Described(RawJson),
    /// It responded with an error.
    ErrorResponse(ErrorResponse),
    /// It did not respond in time.
    TimedOut,
    /// The transport failed.
    Failed(TransportFailure),
}

/// What the client does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProbeDecision {
    /// Use this modern revision: the server has described itself.
    Modern(Revision),
    /// Retry `server/discover` once, in this modern revision.
    Retry(Revision),
    /// Send `initialize` with this legacy revision.
    Legacy(Revision),
    /// The same, over a new connection.
    LegacyReconnect(Revision),
    /// There is no revision in common.
    NoCommonRevision(String),
    /// The outcome is no evidence for either era.
    Undetermined,
}

impl ProbeDecision {
    /// Returns the revision to continue with.
    pub(crate) fn revision(&self) -> Option<Revision> {
        match self {
            Self::Modern(revision)
            | Self::Retry(revision)
            | Self::Legacy(revision)
            | Self::LegacyReconnect(revision) => Some(*revision),
            Self::NoCommonRevision(_) | Self::Undetermined => None,
        }
    }
}

/// Interprets a probe in revision `requested` over a channel, where legacy servers are known to react in any form.
pub(crate) fn decide_over_channel(outcome: &DiscoverOutcome, requested: Revision) -> ProbeDecision {
    let newest = Revision::NEWEST_LEGACY;
    decide_by_response(outcome, requested).unwrap_or(match outcome {
        DiscoverOutcome::Failed(TransportFailure { kind: TransportFailureKind::Closed(_), .. }) => {
            ProbeDecision::LegacyReconnect(newest)
        }
        _ => ProbeDecision::Legacy(newest),
    })
}

/// Interprets a probe in revision `requested` over HTTP, where a failure may have other causes than a legacy server:
/// wrong credentials, an overloaded server, an unknown host.
pub(crate) fn decide_over_http(outcome: &DiscoverOutcome, requested: Revision) -> ProbeDecision {
    decide_by_response(outcome, requested).unwrap_or(match outcome {
        DiscoverOutcome::Failed(failure) => match &failure.kind {
            // The server, or a proxy, responds to such requests with something else.
            TransportFailureKind::Malformed(_) | TransportFailureKind::TooLong { .. } => {
                ProbeDecision::Legacy(Revision::NEWEST_LEGACY)
            }
            TransportFailureKind::Status { status, .. } if is_request_error(*status) => {
                ProbeDecision::Legacy(Revision::NEWEST_LEGACY)
            }
            _ => ProbeDecision::Undetermined,
        },
        _ => ProbeDecision::Undetermined,
    })
}

/// Reports whether a status rejects the request itself, and is not a temporary failure.
fn is_request_error(status: u16) -> bool {
    (400..500).contains(&status) && ![407, 408, 425, 429].contains(&status)
}

/// Reports whether to fall back to HTTP+SSE after `initialize` failed: the endpoint rejects the `POST` with one of
/// these statuses, as the specification's section on backwards compatibility describes.
pub(crate) fn falls_back_to_sse(failure: &HandshakeError) -> bool {
    match failure {
        HandshakeError::Transport(TransportFailure {
            kind: TransportFailureKind::Status { status, .. },
            ..
        }) => [400, 404, 405, 406, 415].contains(status),
        _ => false,
    }
}

/// Interprets a response, which means the same over every transport.
fn decide_by_response(outcome: &DiscoverOutcome, requested: Revision) -> Option<ProbeDecision> {
    let newest = Revision::NEWEST_LEGACY;
    Some(match outcome {
        DiscoverOutcome::Described(result) => match versions(result, "supportedVersions") {
            // A server that responds without a list supports at least the requested revision.
            None if has_capabilities(result) => ProbeDecision::Modern(requested),
            // Some servers respond to unknown methods with an empty result.
            None => ProbeDecision::Legacy(newest),
            Some(listed) => match newest_common_revision(&listed, Era::Modern) {
                Some(revision) => ProbeDecision::Modern(revision),
                None => newest_common_revision(&listed, Era::Legacy)
                    .map_or_else(|| no_common_revision(&listed), ProbeDecision::Legacy),
            },
        },
        DiscoverOutcome::ErrorResponse(refused) if refused.code == error_code::UNSUPPORTED_VERSION => {
            let listed = refused.data.as_ref().and_then(|data| versions(data, "supported"));
            let Some(listed) = listed.filter(|listed| !listed.is_empty()) else {
                return Some(ProbeDecision::Legacy(newest));
            };
            match (newest_common_revision(&listed, Era::Modern), newest_common_revision(&listed, Era::Legacy))
            {
                (Some(revision), _) => ProbeDecision::Retry(revision),
                (None, Some(revision)) => ProbeDecision::Legacy(revision),
                (None, None) => no_common_revision(&listed),
            }
        }
        DiscoverOutcome::ErrorResponse(_) => ProbeDecision::Legacy(newest),
        DiscoverOutcome::TimedOut | DiscoverOutcome::Failed(_) => return None,
    })
}

/// Reports whether a result has capabilities.
fn has_capabilities(result: &RawJson) -> bool {
    result.members().is_ok_and(|members| members.get("capabilities").is_some())
}

/// Parses a list of versions, if there is one.
fn versions(object: &RawJson, member: &str) -> Option<Vec<String>> {
    let listed = object.members().ok()?.get(member)?.elements().ok()?;
    Some(listed.iter().filter_map(RawJson::as_text).map(Into::into).collect())
}

/// Returns the newest revision of an era that both sides support.
fn newest_common_revision(listed: &[String], era: Era) -> Option<Revision> {
    let known = listed.iter().filter_map(|name| Revision::parse(name));
    known.filter(|revision| revision.era() == era).max()
}

fn no_common_revision(listed: &[String]) -> ProbeDecision {
    let shown: Vec<_> = listed.iter().take(8).map(|name| trunkline_protocol::shorten(name)).collect();
    ProbeDecision::NoCommonRevision(format!(
        "the server speaks none of our revisions, but {}",
        shown.join(", ")
    ))
}

impl DiscoverOutcome {
    /// Describes the outcome for error messages.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Described(_) => "answered".to_owned(),
            Self::ErrorResponse(refused) => format!("error {}: {}", refused.code, refused.shown_message()),
            Self::TimedOut => UNANSWERED.to_owned(),
            Self::Failed(failure) => failure.to_string(),
        }
    }

    /// Returns the cause of a failed connection.
    pub(crate) fn cause(&self) -> FailureCause {
        let source = match self {
            Self::Failed(failure) => failure.cause_source().cloned(),
            _ => None,
        };
        FailureCause { message: self.describe(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_transport::RequestDelivery;

    const NEW: Revision = Revision::V2026_07_28;
    const R4: Revision = Revision::V2025_11_25;

    fn refused(code: i64, data: &str) -> DiscoverOutcome {
        let json = match data {
            "" => format!(r#"{{"code":{code},"message":"no"}}"#),
            data => format!(r#"{{"code":{code},"message":"no","data":{data}}}"#),
        };
        DiscoverOutcome::ErrorResponse(ErrorResponse::from_raw(&RawJson::parse(json).unwrap()))
    }

    fn lost(kind: TransportFailureKind) -> DiscoverOutcome {
        DiscoverOutcome::Failed(TransportFailure { delivery: RequestDelivery::MaybeSent, kind })
    }

    fn described(json: &str) -> DiscoverOutcome {
        DiscoverOutcome::Described(RawJson::parse(json.to_owned()).unwrap())
    }

    #[test]
    fn probe_outcome_decides_the_era() {
        let table = [
            (described(r#"{"supportedVersions":["2026-07-28"]}"#), ProbeDecision::Modern(NEW)),
            (
                described(r#"{"supportedVersions":["2025-11-25","2026-07-28","2099-01-01"]}"#),
                ProbeDecision::Modern(NEW),
            ),
            (
                described(r#"{"supportedVersions":["2024-11-05","2025-06-18"]}"#),
                ProbeDecision::Legacy(Revision::V2025_06_18),
            ),
            (described(r#"{"capabilities":{}}"#), ProbeDecision::Modern(NEW)),
            (described("{}"), ProbeDecision::Legacy(R4)),
            (described(r#"{"ok":true}"#), ProbeDecision::Legacy(R4)),
            (described("[]"), ProbeDecision::Legacy(R4)),
            (described("true"), ProbeDecision::Legacy(R4)),
            (refused(-32022, r#"{"supported":["2026-07-28"],"requested":"x"}"#), ProbeDecision::Retry(NEW)),
            (refused(-32022, r#"{"supported":["2026-07-28","2025-11-25"]}"#), ProbeDecision::Retry(NEW)),
            (
                refused(-32022, r#"{"supported":["2025-03-26"]}"#),
                ProbeDecision::Legacy(Revision::V2025_03_26),
            ),
            (refused(-32022, r#"{"supported":[]}"#), ProbeDecision::Legacy(R4)),
            (refused(-32022, r#"{"supported":"2026-07-28"}"#), ProbeDecision::Legacy(R4)),
            (refused(-32022, ""), ProbeDecision::Legacy(R4)),
            (refused(-32601, ""), ProbeDecision::Legacy(R4)),
            (refused(-32602, ""), ProbeDecision::Legacy(R4)),
            (refused(-32600, ""), ProbeDecision::Legacy(R4)),
            (refused(-32000, ""), ProbeDecision::Legacy(R4)),
            (refused(-32020, ""), ProbeDecision::Legacy(R4)),
            (refused(0, ""), ProbeDecision::Legacy(R4)),
        ];
        for (outcome, expected) in table {
            assert_eq!(decide_over_channel(&outcome, NEW), expected, "{outcome:?}");
            assert_eq!(decide_over_http(&outcome, NEW), expected, "{outcome:?}");
        }
    }

    #[test]
    fn no_probe_response_over_a_channel_means_a_legacy_server() {
        let table = [
            (DiscoverOutcome::TimedOut, ProbeDecision::Legacy(R4)),
            (lost(TransportFailureKind::Malformed("not JSON".to_owned())), ProbeDecision::Legacy(R4)),
            (lost(TransportFailureKind::Closed("exited".into())), ProbeDecision::LegacyReconnect(R4)),
        ];
        for (outcome, expected) in table {
            assert_eq!(decide_over_channel(&outcome, NEW), expected, "{outcome:?}");
        }
    }

    #[test]
    fn over_http_only_request_errors_mean_a_legacy_server() {
        let status = |status| lost(TransportFailureKind::Status { status, excerpt: String::new() });
        let unauthorized = |status| lost(TransportFailureKind::Unauthorized { status, challenge: None });
        for number in [400, 402, 404, 405, 406, 409, 410, 413, 415, 422, 431] {
            assert_eq!(decide_over_http(&status(number), NEW), ProbeDecision::Legacy(R4), "{number}");
        }
        for number in [301, 307, 308, 407, 408, 425, 429, 500, 501, 502, 503, 504, 520] {
            assert_eq!(decide_over_http(&status(number), NEW), ProbeDecision::Undetermined, "{number}");
        }
        let table = [
            (lost(TransportFailureKind::Malformed("`text/html`".to_owned())), ProbeDecision::Legacy(R4)),
            (unauthorized(401), ProbeDecision::Undetermined),
            (unauthorized(403), ProbeDecision::Undetermined),
            (lost(TransportFailureKind::Closed("reset".into())), ProbeDecision::Undetermined),
            (DiscoverOutcome::TimedOut, ProbeDecision::Undetermined),
        ];
        for (outcome, expected) in table {
            assert_eq!(decide_over_http(&outcome, NEW), expected, "{outcome:?}");
        }
    }

    #[test]
    fn only_rejected_posts_fall_back_to_http_sse() {
        let lost =
            |kind| HandshakeError::Transport(TransportFailure { delivery: RequestDelivery::NotSent, kind });
        let status = |status| lost(TransportFailureKind::Status { status, excerpt: String::new() });
        for number in [400, 404, 405, 406, 415] {
            assert!(falls_back_to_sse(&status(number)), "{number}");
        }
        for number in [301, 307, 402, 408, 409, 410, 413, 422, 429, 431, 500, 502, 503] {
            assert!(!falls_back_to_sse(&status(number)), "{number}");
        }
        for failure in [
            lost(TransportFailureKind::Unauthorized { status: 401, challenge: None }),
            lost(TransportFailureKind::Unauthorized { status: 403, challenge: None }),
            lost(TransportFailureKind::SessionGone),
            lost(TransportFailureKind::Closed("reset".into())),
            lost(TransportFailureKind::Malformed("`text/html`".to_owned())),
            HandshakeError::TimedOut(std::time::Duration::from_secs(1)),
            HandshakeError::ErrorResponse(ErrorResponse::from_raw(&RawJson::NULL)),
            HandshakeError::InvalidVersion("1999-01-01".to_owned()),
        ] {
            assert!(!falls_back_to_sse(&failure), "{failure:?}");
        }
    }

    #[test]
    fn probe_without_common_revision_is_never_guessed() {
        for outcome in [
            described(r#"{"supportedVersions":["2099-01-01"]}"#),
            described(r#"{"supportedVersions":[]}"#),
            refused(-32022, r#"{"supported":["2099-01-01"]}"#),
        ] {
            assert!(
                matches!(decide_over_channel(&outcome, NEW), ProbeDecision::NoCommonRevision(_)),
                "{outcome:?}"
            );
        }
    }
}
