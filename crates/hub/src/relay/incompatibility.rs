//! Features that the caller's or the server's revision does not have, and the refusals for them.

use trunkline_config::ServerName;
use trunkline_protocol::codec::Dialect;
use trunkline_protocol::model::{ClientCapabilities, InputRequest};
use trunkline_protocol::{Incompatibility, RawJson, Refusal, Revision, shorten};
use trunkline_server::Context;

use crate::upstream::InputSet;

/// The revisions of the two ends of a call.
#[derive(Clone, Debug)]
pub(super) struct RevisionPair {
    pub(super) server: ServerName,
    /// The caller's revision.
    pub(super) downstream: Revision,
    /// The server's revision, if it is known.
    pub(super) upstream: Option<Revision>,
}

/// Which side lacks support for a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingSupport {
    /// The server's revision does not have it.
    Upstream,
    /// The caller's revision does not have it.
    Downstream,
    /// Both revisions have it, and the caller did not declare the capability.
    Declaration,
}

impl RevisionPair {
    pub(super) fn from_context(context: &Context, server: &ServerName, upstream: Option<Revision>) -> Self {
        Self { server: server.clone(), downstream: context.revision(), upstream }
    }

    /// Checks that a caller supports an input request before it is sent.
    ///
    /// # Errors
    /// The caller did not declare the capability, or its revision cannot express the request.
    pub(super) fn check(&self, context: &Context, question: &InputRequest) -> Result<(), Refusal> {
        let is_declared = question.is_supported_by(&context.capabilities());
        match (is_declared, question.check_supported(Dialect::of(self.downstream))) {
            (true, Ok(())) => Ok(()),
            _ => Err(self.cannot_ask_refusal(question)),
        }
    }

    /// Refuses a call of which the server's input request cannot be sent to the caller.
    pub(super) fn cannot_ask_refusal(&self, question: &InputRequest) -> Refusal {
        let problem = format!("the client cannot be asked for {}", question.method());
        self.missing_capability_refusal(&question.required_capability(), Some(question), &problem)
    }

    /// Refuses a caller that lacks capabilities which the server requires. Uses the error code for that if the
    /// caller's revision has one, and the code of an incompatibility otherwise.
    pub(super) fn missing_capability_refusal(
        &self,
        required: &RawJson,
        question: Option<&InputRequest>,
        problem: &str,
    ) -> Refusal {
        let lacks = self.missing_support(required, question);
        let missing = Refusal::missing_capability(required);
        if lacks != MissingSupport::Upstream && missing.has_code_in(self.downstream) {
            return missing.with_message(problem.to_owned());
        }
        let without = match lacks {
            MissingSupport::Upstream => self.upstream.unwrap_or(self.downstream),
            MissingSupport::Downstream | MissingSupport::Declaration => self.downstream,
        };
        let inexpressible =
            question.and_then(|question| question.check_supported(Dialect::of(without)).err());
        let feature =
            inexpressible.map_or_else(|| first_capability(required), |lacks| lacks.feature.to_owned());
        let since = Revision::ALL.into_iter().find(|revision| can_express(*revision, required, question));
        let since =
            since.map_or_else(String::new, |since| format!(" that speaks {since} or a newer revision"));
        let remedy = match lacks {
            MissingSupport::Upstream => {
                format!("the server's revision {without} has no {feature}: use a server{since}")
            }
            MissingSupport::Downstream => format!("revision {without} has no {feature}: use a client{since}"),
            MissingSupport::Declaration => {
                format!(
                    "this client, which speaks revision {without}, did not declare {feature}: use one that does"
                )
            }
        };
        self.incompatibility_refusal(&feature, Some(required), &format!("{problem}: {remedy}"))
    }

    /// Refuses a request that the server's revision cannot express.
    pub(super) fn unsupported_refusal(&self, feature: &str, problem: &str) -> Refusal {
        self.incompatibility_refusal(
            feature,
            None,
            &format!("{problem}: use a server or a client of another revision"),
        )
    }

    fn incompatibility_refusal(&self, feature: &str, required: Option<&RawJson>, problem: &str) -> Refusal {
        let speaks = self.upstream.map_or_else(String::new, |revision| format!(", which speaks {revision}"));
        let gap = Incompatibility { feature, downstream: self.downstream, upstream: self.upstream, required };
        Refusal::incompatible(&gap).with_message(format!("upstream `{}`{speaks}: {problem}", self.server))
    }

    fn missing_support(&self, required: &RawJson, question: Option<&InputRequest>) -> MissingSupport {
        match self.upstream {
            Some(upstream) if !can_express(upstream, required, None) => MissingSupport::Upstream,
            _ if !can_express(self.downstream, required, question) => MissingSupport::Downstream,
            _ => MissingSupport::Declaration,
        }
    }
}

/// Reports whether a revision has these capabilities and can express the input request.
fn can_express(revision: Revision, required: &RawJson, question: Option<&InputRequest>) -> bool {
    let declared = ClientCapabilities::read(required, Revision::NEWEST);
    let required =
        declared.map_or_else(|_| InputSet::default(), |declared| InputSet::from_capabilities(&declared));
    let can_ask = question.is_none_or(|question| question.check_supported(Dialect::of(revision)).is_ok());
    can_ask && required.usable_in(revision).covers(required)
}

/// Returns the path of the first capability, such as `elicitation.url`.
fn first_capability(required: &RawJson) -> String {
    let mut path = Vec::new();
    let mut inner = required.members().ok();
    while let Some((name, value)) =
        inner.as_ref().and_then(|members| members.iter().next()).filter(|_| path.len() < 3)
    {
        path.push(shorten(name));
        inner = value.members().ok();
    }
    if path.is_empty() { "what it would need".to_owned() } else { path.join(".") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(downstream: Revision, upstream: Revision) -> RevisionPair {
        RevisionPair { server: ServerName::parse("a").unwrap(), downstream, upstream: Some(upstream) }
    }

    #[test]
    fn incompatibility_names_the_side_and_the_required_revision() {
        use Revision as R;
        let form = InputRequest::form("?", RawJson::EMPTY_OBJECT);
        let choices = r#"{"type":"object","properties":{"a":{"type":"array"}}}"#;
        let several = InputRequest::form("?", RawJson::parse(choices).unwrap());
        let page = InputRequest::url("?", "https://x.example/");
        for (question, downstream, upstream, feature, words) in [
            (
                &form,
                R::V2024_11_05,
                R::NEWEST,
                "elicitation",
                "revision 2024-11-05 has no elicitation: use a client that speaks 2025-06-18 or",
            ),
            (
                &form,
                R::NEWEST,
                R::V2025_03_26,
                "elicitation",
                "server's revision 2025-03-26 has no elicitation: use a server that speaks 2025-06-18 or",
            ),
            (
                &form,
                R::V2025_11_25,
                R::NEWEST,
                "elicitation.form",
                "which speaks revision 2025-11-25, did not declare elicitation.form",
            ),
            (
                &page,
                R::V2025_06_18,
                R::V2025_11_25,
                "URL elicitation",
                "2025-06-18 has no URL elicitation: use a client that speaks 2025-11-25 or",
            ),
            (
                &several,
                R::V2025_06_18,
                R::NEWEST,
                "form fields with several choices",
                "use a client that speaks 2025-11-25 or",
            ),
        ] {
            let refusal = ends(downstream, upstream).cannot_ask_refusal(question);
            assert!(refusal.is_same_kind(&Refusal::UNBRIDGEABLE), "{refusal:?}");
            assert!(refusal.message().contains(words), "{refusal}");
            let data = refusal.data().unwrap().members().unwrap();
            let fields = ["reason", "feature", "downstream", "upstream"]
                .map(|key| data.text(key).unwrap().to_string());
            assert_eq!(fields, ["unbridgeable", feature, downstream.as_str(), upstream.as_str()]);
            assert_eq!(data.get("requiredCapabilities"), Some(&question.required_capability()));
        }
        // A caller of a revision with an error code for a missing capability gets that code.
        let refusal = ends(R::NEWEST, R::V2025_11_25).cannot_ask_refusal(&page);
        assert!(refusal.is_same_kind(&Refusal::MISSING_CAPABILITY), "{refusal:?}");
    }

    #[test]
    fn missing_capability_is_named_by_its_path() {
        for (required, name) in [
            (r#"{"elicitation":{"url":{}},"roots":{}}"#, "elicitation.url"),
            (r#"{"a":{"b":{"c":{"d":{}}}}}"#, "a.b.c"),
            ("{}", "what it would need"),
            ("[]", "what it would need"),
        ] {
            assert_eq!(first_capability(&RawJson::parse(required).unwrap()), name);
        }
    }
}
