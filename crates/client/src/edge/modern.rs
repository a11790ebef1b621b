//! Revisions from 2026-07-28 on: every request stands alone, and a server asks by its answer.

use trunkline_protocol::codec::{Dialect, RawResult};
use trunkline_protocol::model::{ClientCapabilities, Implementation, Question, ServerCapabilities};
use trunkline_protocol::{
    Era, Members, Method, Raw, Refusal, Request, Revision, Writer, emit, meta, shorten,
};

use super::{Extras, Settled};
use crate::call::{Answers, Brought, Call, Said};
use crate::carrier::{Answerer, Mirror, Outgoing};
use crate::connect::Described;
use crate::error::{Error, Refused};
use crate::subscribe::Watch;

/// The edge of a server that keeps no session.
#[derive(Debug)]
pub(crate) struct Modern {
    revision: Revision,
    /// The beginning of the `_meta` that every request has, written once up to the capabilities that come next.
    claim: String,
    /// The capabilities, written once.
    capabilities: Raw,
}

impl Modern {
    pub(crate) fn new(
        revision: Revision,
        identity: &Implementation,
        capabilities: &ClientCapabilities,
    ) -> Self {
        let mut writer = Writer::with_capacity(256);
        writer.open_object();
        writer.plain_key(meta::PROTOCOL_VERSION);
        writer.string(revision.as_str());
        writer.plain_key(meta::CLIENT_INFO);
        identity.write(Dialect::of(revision), &mut writer);
        writer.plain_key(meta::CLIENT_CAPABILITIES);
        let claim = writer.into_string();
        Self { revision, claim, capabilities: capabilities.for_revision(revision) }
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Refuses a request of the server, which waits for an answer although the era has no such requests.
    pub(super) fn refuse_request(&self, request: &Request) -> Refusal {
        let (method, revision) = (shorten(&request.method), self.revision);
        let problem = format!(
            "`{method}`: revision {revision} has no requests from servers; return a result of type `input_required` instead"
        );
        Refusal::METHOD_NOT_FOUND.because(problem)
    }

    pub(super) fn write(&self, id: u64, call: &Call, extras: Extras<'_>) -> Result<Outgoing, Error> {
        let brought = match extras.brought {
            Some(Brought::Asked(state, Said::Answers(answers))) => (write_answers(answers)?, state.as_ref()),
            Some(Brought::Asked(state, Said::Carried(answers))) => (write_carried(answers), state.as_ref()),
            Some(Brought::Ahead(answers)) => (write_carried(answers), None),
            None => (None, None),
        };
        let hint = call.hint() + self.claim.len() + self.capabilities.as_str().len() + 64;
        let body = emit::numbered_request(id, &call.method, hint, |writer| {
            writer.open_object();
            call.params.write_into(writer);
            let (answers, state) = &brought;
            if let Some(answers) = answers {
                writer.member("inputResponses", answers);
            }
            if let Some(state) = state {
                writer.member("requestState", state);
            }
            writer.verbatim(r#""_meta":"#);
            self.write_meta(id, call, &extras, writer);
            writer.close_object();
        });
        let mirror =
            Mirror::Whole { revision: self.revision, name: call.mirrored_name(), params: extras.params };
        Ok(Outgoing { id, method: call.method.clone(), body, mirror, answerer: Answerer::None })
    }

    fn write_meta(&self, id: u64, call: &Call, extras: &Extras<'_>, writer: &mut Writer) {
        writer.verbatim(&self.claim);
        match &call.capabilities {
            Some(capabilities) => writer.raw(&capabilities.for_revision(self.revision)),
            None => writer.raw(&self.capabilities),
        }
        if call.wants_progress() {
            writer.plain_key(meta::PROGRESS_TOKEN);
            writer.unsigned(id);
        }
        if let Some(level) = call.log_level.or(extras.level) {
            writer.plain_key(meta::LOG_LEVEL);
            writer.string(level.as_str());
        }
        call.meta.write_into(writer);
        writer.close_object();
    }

    pub(super) fn read(
        method: Option<Method>,
        outcome: Result<RawResult, Raw>,
        capabilities: &ClientCapabilities,
    ) -> Result<Settled, Error> {
        let result = outcome.map_err(|error| Error::Refused(Refused::read(&error)))?;
        // What nearly every result begins with.
        if result.as_str().starts_with(r#"{"resultType":"complete","#) {
            return Ok(Settled::Done(result));
        }
        let members =
            result.shallow_members().map_err(|error| Error::Malformed(format!("the result: {error}")))?;
        let kind = members.get("resultType").map(|kind| kind.as_text().unwrap_or_default());
        match kind.as_deref() {
            None | Some("complete") => Ok(Settled::Done(result)),
            Some("input_required") if method.is_some_and(Method::may_ask) => {
                let questions = read_questions(members.get("inputRequests"))?;
                if let Some((_, question)) =
                    questions.iter().find(|(_, asked)| !asked.allowed_by(capabilities))
                {
                    let problem = format!("it asks `{}`, which the client did not offer", question.method());
                    return Err(Error::Malformed(problem));
                }
                let state = members.get("requestState").map(Raw::detached);
                if questions.is_empty() && state.is_none() {
                    let problem = "it wants to be asked again, and gives neither question nor state";
                    return Err(Error::Malformed(problem.to_owned()));
                }
                Ok(Settled::Ask(questions, state))
            }
            Some("input_required") => {
                Err(Error::Malformed("the server asks within a request that has no questions".to_owned()))
            }
            Some(other) => Err(Error::Malformed(format!("unknown type of result `{}`", shorten(other)))),
        }
    }
}

fn read_questions(requests: Option<&Raw>) -> Result<Vec<(String, Question)>, Error> {
    let Some(requests) = requests else { return Ok(Vec::new()) };
    let malformed = |key: &str, problem: &dyn std::fmt::Display| {
        Error::Malformed(format!("the question `{}`: {problem}", shorten(key)))
    };
    let requests = requests.members().map_err(|error| malformed("inputRequests", &error))?;
    let read = |(key, request): (&trunkline_protocol::ByteString, &Raw)| {
        // Questions live as long as a user thinks, and must not keep their message that long.
        let request = request.detached().members().map_err(|error| malformed(key, &error))?;
        let method = request.text("method").unwrap_or_default();
        let params = match request.get("params") {
            Some(params) => params.members().map_err(|error| malformed(key, &error))?,
            None => Default::default(),
        };
        let question = Question::read(&method, params).map_err(|refusal| malformed(key, &refusal))?;
        Ok((key.to_string(), question))
    };
    requests.iter().map(read).collect()
}

/// Writes answers as the members of one object; nothing if there are none.
fn write_answers(answers: &Answers) -> Result<Option<Raw>, Error> {
    if answers.is_empty() {
        return Ok(None);
    }
    let mut writer = Writer::with_capacity(128);
    writer.open_object();
    for (key, answer) in answers {
        // Within a result there is no way to refuse; the call is simply not made again.
        let answer = answer.as_ref().map_err(|refusal| Error::Unanswered(refusal.clone()))?;
        writer.key(key);
        answer
            .write(Dialect::NEWEST, &mut writer)
            .map_err(|lacks| Error::Invalid(format!("the answer cannot be said: {lacks}")))?;
    }
    writer.close_object();
    Ok(Some(writer.into_raw()))
}

/// Writes answers that are carried as they came; nothing if there are none.
fn write_carried(answers: &[(String, Raw)]) -> Option<Raw> {
    let members = answers.iter().map(|(key, answer)| (key.as_str().into(), answer.clone()));
    (!answers.is_empty()).then(|| members.collect::<Members>().to_raw())
}

/// Writes the standing request within which changes are told.
pub(super) fn listen(watch: &Watch) -> Call {
    let mut call = Call::of(Method::Listen);
    call.params.set("notifications", watch.to_raw());
    call
}

/// Reads what a server says of itself.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub(crate) fn read_discovered(result: &Raw, revision: Revision) -> Result<Described, String> {
    let members = result.members().map_err(|error| format!("the answer is not usable: {error}"))?;
    let capabilities = members.get("capabilities").map_or(Raw::EMPTY_OBJECT, Raw::detached);
    let server = members.get("_meta").and_then(|meta| meta.members().ok()).and_then(|mut meta| {
        let server = meta.take(meta::SERVER_INFO)?;
        Implementation::read_repaired(&server.detached()).ok().map(|repaired| repaired.item)
    });
    Ok(Described {
        revision,
        capabilities: ServerCapabilities::read(&capabilities)
            .map_err(|error| format!("the server's capabilities are not usable: {error}"))?,
        identity: server,
        instructions: members.text("instructions").map(Into::into),
        lists_legacy: lists_legacy(&members),
    })
}

/// Reports whether a server lists revisions in which it is asked otherwise.
fn lists_legacy(members: &Members) -> bool {
    let listed =
        members.get("supportedVersions").and_then(|listed| listed.elements().ok()).unwrap_or_default();
    let known = listed.iter().filter_map(|name| Revision::parse(&name.as_text()?));
    known.into_iter().any(|revision| revision.era() == Era::Legacy)
}
