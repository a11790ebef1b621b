//! Revisions up to 2025-11-25: a handshake, a session, and a server that asks by requests of its own.

use trunkline_protocol::codec::{Dialect, RawResult};
use trunkline_protocol::model::{
    Action, Answer, ClientCapabilities, Implementation, Question, ServerCapabilities,
};
use trunkline_protocol::{
    Era, Id, Level, Method, Raw, Refusal, Request, Revision, Writer, emit, error_code, meta, shorten,
};

use super::{Asked, Extras, Settled};
use crate::call::{Brought, Call, Said};
use crate::carrier::{Answerer, Mirror, Outgoing, Posted};
use crate::connect::Described;
use crate::error::{Error, Refused};

/// The edge of a session.
#[derive(Debug)]
pub(crate) struct Legacy {
    revision: Revision,
}

impl Legacy {
    pub(crate) fn new(revision: Revision) -> Self {
        Self { revision }
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    pub(super) fn write(&self, id: u64, call: &Call, extras: &Extras<'_>) -> Result<Outgoing, Error> {
        // The only call that is made again here is one whose pages were to be visited first. Answers that nobody asked for
        // have no place in a session.
        if let Some(Brought::Asked(_, said)) = extras.brought {
            check_agreed(said)?;
        }
        let (wants_progress, dialect) = (call.wants_progress(), Dialect::of(self.revision));
        let body = emit::numbered_request(id, &call.method, call.hint(), |writer| {
            writer.open_object();
            for (key, value) in call.params.iter() {
                if dialect.completion_context || call.known != Some(Method::Complete) || key != "context" {
                    writer.member(key, value);
                }
            }
            if wants_progress || !call.meta.is_empty() {
                writer.plain_key("_meta");
                writer.open_object();
                if wants_progress {
                    writer.plain_key(meta::PROGRESS_TOKEN);
                    writer.unsigned(id);
                }
                call.meta.write_into(writer);
                writer.close_object();
            }
            writer.close_object();
        });
        let mirror = Mirror::Version(self.revision);
        Ok(Outgoing { id, method: call.method.clone(), body, mirror, answerer: extras.answerer })
    }

    pub(super) fn roots_changed(&self) -> Posted {
        let body = emit::bare_notification("notifications/roots/list_changed");
        Posted { body, mirror: Mirror::Version(self.revision), answers: None, is_for_channels: false }
    }

    pub(super) fn read(
        outcome: Result<RawResult, Raw>,
        capabilities: &ClientCapabilities,
    ) -> Result<Settled, Error> {
        let error = match outcome {
            Ok(result) => return Ok(Settled::Done(result)),
            Err(error) => Refused::read(&error),
        };
        match pages_to_visit(&error).filter(|_| capabilities.url()) {
            Some(questions) => Ok(Settled::Ask(questions, None)),
            None => Err(Error::Refused(error)),
        }
    }
}

/// Reads the pages that have to be visited before a call is made again, which is a question like any other.
fn pages_to_visit(error: &Refused) -> Option<Vec<(String, Question)>> {
    if error.code != error_code::URL_ELICITATION_REQUIRED {
        return None;
    }
    let pages = error.data.as_ref()?.members().ok()?.get("elicitations")?.elements().ok()?;
    let questions: Option<Vec<_>> = pages
        .iter()
        .enumerate()
        .map(|(index, page)| {
            let question = Question::read("elicitation/create", page.members().ok()?).ok()?;
            matches!(question, Question::Url(_)).then(|| (format!("u{}", index + 1), question))
        })
        .collect();
    questions.filter(|questions| !questions.is_empty())
}

/// A call whose pages nobody wants to visit is not made again.
fn check_agreed(said: &Said) -> Result<(), Error> {
    let agreed =
        |answer: &Answer| matches!(answer, Answer::Elicit(result) if result.action == Action::Accept);
    let refused = || Error::Unanswered(Refusal::INTERNAL.because("the page was not agreed to"));
    let check = |answer: Result<Answer, Refusal>| match answer {
        Ok(answer) if agreed(&answer) => Ok(()),
        Ok(_) => Err(refused()),
        Err(refusal) => Err(Error::Unanswered(refusal)),
    };
    match said {
        Said::Answers(answers) => answers.iter().try_for_each(|(_, answer)| check(answer.clone())),
        Said::Carried(answers) => {
            let page = Question::url("", "");
            answers
                .iter()
                .try_for_each(|(_, raw)| check(page.read_answer(raw).map_err(|_| Refusal::INVALID_PARAMS)))
        }
    }
}

/// Reads a question, or says why it is refused.
pub(super) fn question(request: Request, capabilities: &ClientCapabilities) -> Asked {
    let mut params = request.params.members;
    // The rest of it may be for whoever answers; the token is for us alone, and we report no progress.
    if let Some(mut meta) = request.params.meta {
        meta.take(meta::PROGRESS_TOKEN);
        if !meta.is_empty() {
            params.set("_meta", meta.to_raw());
        }
    }
    let question = Question::read(&request.method, params).map_err(|refusal| (refusal, None))?;
    if question.allowed_by(capabilities) {
        return Ok(question);
    }
    let declares_some = match &question {
        Question::Form(_) | Question::Url(_) => capabilities.form() || capabilities.url(),
        Question::Sample(_) => capabilities.sampling(),
        Question::Roots => false,
    };
    let problem = format!("this client did not declare what `{}` needs", shorten(&request.method));
    let refusal = match declares_some {
        true => Refusal::INVALID_PARAMS.because(problem),
        false => Refusal::METHOD_NOT_FOUND.because(problem),
    };
    Err((refusal, Some(Box::new(question))))
}

/// Writes the answer to a question, or the refusal.
pub(super) fn answer(revision: Revision, id: &Id, answer: Result<&Answer, &Refusal>) -> Posted {
    let written = match answer {
        Ok(answer) => {
            let mut writer = Writer::with_capacity(128);
            match answer.write(Dialect::of(revision), &mut writer) {
                Ok(()) => Ok(writer.into_raw()),
                Err(lacks) => Err(Refusal::INTERNAL.because(format!("the answer cannot be said: {lacks}"))),
            }
        }
        Err(refusal) => Err(refusal.clone()),
    };
    let body = match written {
        Ok(result) => emit::result(id, result.as_str().len(), |writer| writer.raw(&result)),
        Err(refusal) => emit::error(Some(id), &refusal, revision),
    };
    Posted { body, mirror: Mirror::Version(revision), answers: Some(id.clone()), is_for_channels: false }
}

/// Asks for log messages from a level on.
pub(super) fn set_level(level: Level) -> Call {
    let mut call = Call::of(Method::SetLevel);
    call.params.set("level", Raw::from_text(level.as_str()));
    call
}

/// Begins or ends to watch a resource.
pub(crate) fn about_resource(method: Method, uri: &str) -> Call {
    let mut call = Call::of(method);
    call.params.set("uri", Raw::from_text(uri));
    call
}

/// Writes the request that opens a session.
pub(crate) fn initialize(
    id: u64,
    revision: Revision,
    identity: &Implementation,
    capabilities: &ClientCapabilities,
) -> Outgoing {
    let method = Method::Initialize.as_str();
    let body = emit::numbered_request(id, method, 256, |writer| {
        writer.open_object();
        writer.plain_key("protocolVersion");
        writer.string(revision.as_str());
        writer.member("capabilities", &capabilities.for_revision(revision));
        writer.plain_key("clientInfo");
        identity.write(Dialect::of(revision), writer);
        writer.close_object();
    });
    Outgoing { id, method: method.into(), body, mirror: Mirror::Nothing, answerer: Answerer::None }
}

/// Writes the notification that the session is open.
pub(crate) fn initialized(revision: Revision) -> Posted {
    let body = emit::bare_notification("notifications/initialized");
    Posted { body, mirror: Mirror::Version(revision), answers: None, is_for_channels: false }
}

/// Reads the answer that opens a session.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub(crate) fn read_initialized(result: &Raw) -> Result<Described, String> {
    let members =
        result.members().map_err(|error| format!("the answer to `initialize` is not usable: {error}"))?;
    let Some(version) = members.text("protocolVersion") else {
        return Err("the server answered `initialize` without a `protocolVersion`".to_owned());
    };
    let revision = match Revision::parse(&version) {
        Some(revision) if revision.era() == Era::Legacy => revision,
        // A pre-release name that some servers still answer with; its wire format is that of the first release.
        None if version == "2024-10-07" => Revision::V2024_11_05,
        _ => return Err(format!("the server answered `initialize` with revision `{}`", shorten(&version))),
    };
    let capabilities = members.get("capabilities").cloned().unwrap_or(Raw::EMPTY_OBJECT);
    Ok(Described {
        revision,
        capabilities: ServerCapabilities::read(&capabilities)
            .map_err(|error| format!("the server's capabilities are not usable: {error}"))?,
        // A description that is not quite right is no reason not to talk.
        identity: members
            .get("serverInfo")
            .and_then(|raw| Implementation::read_repaired(&raw.detached()).ok())
            .map(|repaired| repaired.item),
        instructions: members.text("instructions").map(Into::into),
        lists_legacy: false,
    })
}
