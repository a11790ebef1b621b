//! What the answer to `server/discover` says about a server: a table, and nothing but a table.

use trunkline_protocol::{Era, Raw, Revision};

use crate::error::Refused;

/// The code by which a modern server says that it does not speak the version that it was asked in.
const UNSUPPORTED_VERSION: i64 = -32022;

/// What came of asking a server to describe itself in a modern revision.
#[derive(Clone, Debug)]
pub(crate) enum Observation {
    /// It did.
    Described(Raw),
    /// It answered with an error.
    Refused(Refused),
    /// It said nothing in time.
    Silence,
    /// It is gone.
    Gone(String),
    /// It answered with something that is no answer.
    Nonsense(String),
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
}

/// Judges what came of asking in `asked`.
pub(crate) fn judge(observation: &Observation, asked: Revision) -> Verdict {
    let newest = Revision::NEWEST_LEGACY;
    match observation {
        Observation::Described(result) => match versions(result, "supportedVersions") {
            // A server that answers and lists nothing speaks at least what it was asked in.
            None => Verdict::Modern(asked),
            Some(listed) => match best(&listed, Era::Modern) {
                Some(revision) => Verdict::Modern(revision),
                None => best(&listed, Era::Legacy).map_or_else(|| nothing(&listed), Verdict::Legacy),
            },
        },
        Observation::Refused(refused) if refused.code == UNSUPPORTED_VERSION => {
            let listed = refused.data.as_ref().and_then(|data| versions(data, "supported"));
            let Some(listed) = listed.filter(|listed| !listed.is_empty()) else {
                return Verdict::Legacy(newest);
            };
            match (best(&listed, Era::Modern), best(&listed, Era::Legacy)) {
                (Some(revision), _) => Verdict::Again(revision),
                (None, Some(revision)) => Verdict::Legacy(revision),
                (None, None) => nothing(&listed),
            }
        }
        Observation::Refused(_) | Observation::Silence | Observation::Nonsense(_) => Verdict::Legacy(newest),
        Observation::Gone(_) => Verdict::LegacyAfresh(newest),
    }
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
            Self::Gone(how) => how.clone(),
            Self::Nonsense(problem) => problem.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: Revision = Revision::V2026_07_28;
    const R4: Revision = Revision::V2025_11_25;

    fn refused(code: i64, data: &str) -> Observation {
        let json = match data {
            "" => format!(r#"{{"code":{code},"message":"no"}}"#),
            data => format!(r#"{{"code":{code},"message":"no","data":{data}}}"#),
        };
        Observation::Refused(Refused::read(&Raw::parse(json).unwrap()))
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
            (described("{}"), Verdict::Modern(NEW)),
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
            (Observation::Silence, Verdict::Legacy(R4)),
            (Observation::Nonsense("not JSON".to_owned()), Verdict::Legacy(R4)),
            (Observation::Gone("exited".to_owned()), Verdict::LegacyAfresh(R4)),
        ];
        for (observation, expected) in table {
            assert_eq!(judge(&observation, NEW), expected, "{observation:?}");
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
