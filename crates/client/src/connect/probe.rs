//! What the answer to `server/discover` says about a server: a table, and nothing but a table.

use trunkline_protocol::{Era, Raw, Revision, error_code};

use super::handshake::Failure;
use crate::carrier::{Loss, LossKind};
use crate::error::{Error, Refused};

/// What came of asking a server to describe itself in a modern revision.
#[derive(Clone, Debug)]
pub(crate) enum Observation {
    /// It did.
    Described(Raw),
    /// It answered with an error.
    Refused(Refused),
    /// It said nothing in time.
    Silence,
    /// There is no answer, and will be none.
    Lost(Loss),
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Talk to it in this modern revision: it has described itself.
    Modern(Revision),
    /// Ask again, once, in this modern revision.
    Again(Revision),
    /// Shake hands, and offer this legacy revision.
    Legacy(Revision),
    /// The same, over a new connection.
    LegacyAfresh(Revision),
    /// There is no revision in common.
    Nothing(String),
    /// What was seen says nothing about the era.
    Unknown,
}

impl Verdict {
    /// Returns the revision to go on with.
    pub(crate) fn revision(&self) -> Option<Revision> {
        match self {
            Self::Modern(revision)
            | Self::Again(revision)
            | Self::Legacy(revision)
            | Self::LegacyAfresh(revision) => Some(*revision),
            Self::Nothing(_) | Self::Unknown => None,
        }
    }
}

/// Judges what came of asking in `asked` over a channel, where old servers are seen to do anything at all.
pub(crate) fn judge(observation: &Observation, asked: Revision) -> Verdict {
    let newest = Revision::NEWEST_LEGACY;
    judge_answer(observation, asked).unwrap_or(match observation {
        Observation::Lost(Loss { kind: LossKind::Closed(_), .. }) => Verdict::LegacyAfresh(newest),
        _ => Verdict::Legacy(newest),
    })
}

/// Judges what came of asking in `asked` over HTTP, where there are other reasons than age for having no answer: wrong
/// credentials, a server that fails or is too busy, a name that nobody has.
pub(crate) fn judge_http(observation: &Observation, asked: Revision) -> Verdict {
    judge_answer(observation, asked).unwrap_or(match observation {
        Observation::Lost(loss) => match &loss.kind {
            // The server, or something before it, answers requests of this kind with something else.
            LossKind::Malformed(_) | LossKind::TooLong { .. } => Verdict::Legacy(Revision::NEWEST_LEGACY),
            LossKind::Status { status, .. } if blames_the_request(*status) => {
                Verdict::Legacy(Revision::NEWEST_LEGACY)
            }
            _ => Verdict::Unknown,
        },
        _ => Verdict::Unknown,
    })
}

/// Tells whether a status says that the request is not one for this place, and not that it came at a bad time.
fn blames_the_request(status: u16) -> bool {
    (400..500).contains(&status) && ![407, 408, 425, 429].contains(&status)
}

/// Tells whether a session that could not be opened over HTTP leaves HTTP+SSE to be tried: the place takes no requests of
/// this kind, and says so by nothing but a status.
pub(crate) fn descends(failure: &Failure) -> bool {
    match failure {
        Failure::Lost(Loss { kind: LossKind::Status { status, .. }, .. }) => {
            [400, 404, 405, 406, 415].contains(status)
        }
        _ => false,
    }
}

/// Judges an answer, which means the same wherever it came from.
fn judge_answer(observation: &Observation, asked: Revision) -> Option<Verdict> {
    let newest = Revision::NEWEST_LEGACY;
    Some(match observation {
        Observation::Described(result) => match versions(result, "supportedVersions") {
            // A server that answers and lists nothing speaks at least what it was asked in.
            None if describes(result) => Verdict::Modern(asked),
            // Some answer whatever they do not know with a result that says nothing.
            None => Verdict::Legacy(newest),
            Some(listed) => match best(&listed, Era::Modern) {
                Some(revision) => Verdict::Modern(revision),
                None => best(&listed, Era::Legacy).map_or_else(|| nothing(&listed), Verdict::Legacy),
            },
        },
        Observation::Refused(refused) if refused.code == error_code::UNSUPPORTED_VERSION => {
            let listed = refused.data.as_ref().and_then(|data| versions(data, "supported"));
            let Some(listed) = listed.filter(|listed| !listed.is_empty()) else {
                return Some(Verdict::Legacy(newest));
            };
            match (best(&listed, Era::Modern), best(&listed, Era::Legacy)) {
                (Some(revision), _) => Verdict::Again(revision),
                (None, Some(revision)) => Verdict::Legacy(revision),
                (None, None) => nothing(&listed),
            }
        }
        Observation::Refused(_) => Verdict::Legacy(newest),
        Observation::Silence | Observation::Lost(_) => return None,
    })
}

/// Tells whether a result says what a server can do.
fn describes(result: &Raw) -> bool {
    result.members().is_ok_and(|members| members.get("capabilities").is_some())
}

/// Reads a list of versions, if there is one.
fn versions(object: &Raw, member: &str) -> Option<Vec<String>> {
    let listed = object.members().ok()?.get(member)?.elements().ok()?;
    Some(listed.iter().filter_map(Raw::as_text).map(Into::into).collect())
}

/// Returns the newest revision of an era that both sides know.
fn best(listed: &[String], era: Era) -> Option<Revision> {
    let known = listed.iter().filter_map(|name| Revision::parse(name));
    known.filter(|revision| revision.era() == era).max()
}

fn nothing(listed: &[String]) -> Verdict {
    let shown: Vec<_> = listed.iter().take(8).map(|name| trunkline_protocol::shorten(name)).collect();
    Verdict::Nothing(format!("the server speaks none of our revisions, but {}", shown.join(", ")))
}

impl Observation {
    /// Says what was seen, for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Described(_) => "answered".to_owned(),
            Self::Refused(refused) => format!("error {}: {}", refused.code, refused.message),
            Self::Silence => "no answer in time".to_owned(),
            Self::Lost(loss) => Error::from(loss.clone()).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Reach;

    const NEW: Revision = Revision::V2026_07_28;
    const R4: Revision = Revision::V2025_11_25;

    fn refused(code: i64, data: &str) -> Observation {
        let json = match data {
            "" => format!(r#"{{"code":{code},"message":"no"}}"#),
            data => format!(r#"{{"code":{code},"message":"no","data":{data}}}"#),
        };
        Observation::Refused(Refused::read(&Raw::parse(json).unwrap()))
    }

    fn lost(kind: LossKind) -> Observation {
        Observation::Lost(Loss { reach: Reach::MayHaveReached, kind })
    }

    fn described(json: &str) -> Observation {
        Observation::Described(Raw::parse(json.to_owned()).unwrap())
    }

    #[test]
    fn what_a_probe_sees_decides_the_era() {
        let table = [
            (described(r#"{"supportedVersions":["2026-07-28"]}"#), Verdict::Modern(NEW)),
            (
                described(r#"{"supportedVersions":["2025-11-25","2026-07-28","2099-01-01"]}"#),
                Verdict::Modern(NEW),
            ),
            (
                described(r#"{"supportedVersions":["2024-11-05","2025-06-18"]}"#),
                Verdict::Legacy(Revision::V2025_06_18),
            ),
            (described(r#"{"capabilities":{}}"#), Verdict::Modern(NEW)),
            (described("{}"), Verdict::Legacy(R4)),
            (described(r#"{"ok":true}"#), Verdict::Legacy(R4)),
            (described("[]"), Verdict::Legacy(R4)),
            (described("true"), Verdict::Legacy(R4)),
            (refused(-32022, r#"{"supported":["2026-07-28"],"requested":"x"}"#), Verdict::Again(NEW)),
            (refused(-32022, r#"{"supported":["2026-07-28","2025-11-25"]}"#), Verdict::Again(NEW)),
            (refused(-32022, r#"{"supported":["2025-03-26"]}"#), Verdict::Legacy(Revision::V2025_03_26)),
            (refused(-32022, r#"{"supported":[]}"#), Verdict::Legacy(R4)),
            (refused(-32022, r#"{"supported":"2026-07-28"}"#), Verdict::Legacy(R4)),
            (refused(-32022, ""), Verdict::Legacy(R4)),
            (refused(-32601, ""), Verdict::Legacy(R4)),
            (refused(-32602, ""), Verdict::Legacy(R4)),
            (refused(-32600, ""), Verdict::Legacy(R4)),
            (refused(-32000, ""), Verdict::Legacy(R4)),
            (refused(-32020, ""), Verdict::Legacy(R4)),
            (refused(0, ""), Verdict::Legacy(R4)),
        ];
        for (observation, expected) in table {
            assert_eq!(judge(&observation, NEW), expected, "{observation:?}");
            assert_eq!(judge_http(&observation, NEW), expected, "{observation:?}");
        }
    }

    #[test]
    fn no_answer_over_a_channel_means_an_old_server() {
        let table = [
            (Observation::Silence, Verdict::Legacy(R4)),
            (lost(LossKind::Malformed("not JSON".to_owned())), Verdict::Legacy(R4)),
            (lost(LossKind::Closed("exited".to_owned())), Verdict::LegacyAfresh(R4)),
        ];
        for (observation, expected) in table {
            assert_eq!(judge(&observation, NEW), expected, "{observation:?}");
        }
    }

    #[test]
    fn over_http_only_a_complaint_about_the_request_means_an_old_server() {
        let status = |status| lost(LossKind::Status { status, excerpt: String::new() });
        let unauthorized = |status| lost(LossKind::Unauthorized { status, challenge: None });
        for number in [400, 402, 404, 405, 406, 409, 410, 413, 415, 422, 431] {
            assert_eq!(judge_http(&status(number), NEW), Verdict::Legacy(R4), "{number}");
        }
        for number in [301, 307, 308, 407, 408, 425, 429, 500, 501, 502, 503, 504, 520] {
            assert_eq!(judge_http(&status(number), NEW), Verdict::Unknown, "{number}");
        }
        let table = [
            (lost(LossKind::Malformed("`text/html`".to_owned())), Verdict::Legacy(R4)),
            (unauthorized(401), Verdict::Unknown),
            (unauthorized(403), Verdict::Unknown),
            (lost(LossKind::Closed("reset".to_owned())), Verdict::Unknown),
            (Observation::Silence, Verdict::Unknown),
        ];
        for (observation, expected) in table {
            assert_eq!(judge_http(&observation, NEW), expected, "{observation:?}");
        }
    }

    #[test]
    fn only_a_place_that_takes_no_such_requests_leads_to_http_with_sse() {
        let lost = |kind| Failure::Lost(Loss { reach: Reach::NotReached, kind });
        let status = |status| lost(LossKind::Status { status, excerpt: String::new() });
        for number in [400, 404, 405, 406, 415] {
            assert!(descends(&status(number)), "{number}");
        }
        for number in [301, 307, 402, 408, 409, 410, 413, 422, 429, 431, 500, 502, 503] {
            assert!(!descends(&status(number)), "{number}");
        }
        for failure in [
            lost(LossKind::Unauthorized { status: 401, challenge: None }),
            lost(LossKind::Unauthorized { status: 403, challenge: None }),
            lost(LossKind::SessionGone),
            lost(LossKind::Closed("reset".to_owned())),
            lost(LossKind::Malformed("`text/html`".to_owned())),
            Failure::Silence(std::time::Duration::from_secs(1)),
            Failure::Refused(Refused::read(&Raw::NULL)),
            Failure::Version("1999-01-01".to_owned()),
        ] {
            assert!(!descends(&failure), "{failure:?}");
        }
    }

    #[test]
    fn a_server_without_a_common_revision_is_never_guessed_at() {
        for observation in [
            described(r#"{"supportedVersions":["2099-01-01"]}"#),
            described(r#"{"supportedVersions":[]}"#),
            refused(-32022, r#"{"supported":["2099-01-01"]}"#),
        ] {
            assert!(matches!(judge(&observation, NEW), Verdict::Nothing(_)), "{observation:?}");
        }
    }
}
