use std::borrow::Cow;

use trunkline_config::Share;
use trunkline_protocol::Level;
use trunkline_protocol::model::ClientCapabilities;
use trunkline_server::Context;
use trunkline_session::{Principal, SessionId};

use super::connection::Who;
use super::input::InputSet;
use super::roots::{KnownRoots, digest};
use super::state::Known;

/// For whom a connection is needed.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    principal: Principal,
    session: Option<SessionId>,
    capabilities: ClientCapabilities,
    /// The mildest log message that it wants, if it wants any.
    log_level: Option<Level>,
    input: InputSet,
    /// Its roots, as far as they are known.
    pub(crate) roots: Option<KnownRoots>,
}

/// What a call still has to know of its party once it has a connection.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) input: InputSet,
    pub(crate) log_level: Option<Level>,
}

/// Which connections serve a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) who: Who,
    pub(super) input: InputSet,
}

impl Party {
    /// Describes the caller of a request.
    pub(crate) fn of(context: &Context) -> Self {
        context.with_caller(|caller| {
            let capabilities = without_tasks(caller.capabilities());
            Self {
                principal: caller.principal.clone(),
                session: caller.session,
                log_level: caller.log_level,
                input: InputSet::of(&capabilities),
                capabilities,
                roots: None,
            }
        })
    }

    /// Returns what it can be asked.
    pub(crate) fn input(&self) -> InputSet {
        self.input
    }

    /// Reports whether it can be asked for its roots.
    pub(crate) fn has_roots(&self) -> bool {
        self.input.has_roots()
    }

    /// Notes its roots.
    pub(crate) fn with_roots(self, roots: Option<Vec<trunkline_protocol::model::Root>>) -> Self {
        Self { roots: roots.map(|roots| (digest(&roots), roots)), ..self }
    }

    /// Forgets what was needed to find a connection.
    pub(crate) fn into_caller(self) -> Caller {
        Caller { capabilities: self.capabilities, input: self.input, log_level: self.log_level }
    }

    /// Returns which connections serve it, given what is known of the server.
    pub(super) fn place(&self, share: Share, known: Option<&Known>) -> Place {
        let keeps_sessions = known.is_none_or(|known| known.keeps_sessions);
        let who = match (share, self.session) {
            (Share::Call, _) => Who::Call,
            (Share::Session, Some(session)) => Who::Session(session),
            (Share::All, _) => Who::Everybody,
            // What a server without sessions is told in one request is forgotten in the next.
            (Share::Principal, _) if !keeps_sessions => Who::Everybody,
            (Share::Principal | Share::Session, _) => Who::Principal(self.principal.clone()),
        };
        let input = match known {
            _ if share == Share::All => InputSet::default(),
            Some(known) if known.keeps_sessions => self.input.usable_in(known.revision),
            // Such a server is told with each request what it may ask.
            Some(_) => InputSet::default(),
            None => self.input,
        };
        Place { who, input }
    }
}

/// The extension by which results may be tasks, which are not carried.
const TASKS: &str = "io.modelcontextprotocol/tasks";

fn without_tasks(capabilities: ClientCapabilities) -> ClientCapabilities {
    if capabilities.extension(TASKS).is_none() {
        return capabilities;
    }
    capabilities.without_extension(TASKS)
}

impl Place {
    /// The place of a connection that is made before anybody needs it.
    pub(super) fn nobodys() -> Self {
        Self { who: Who::Nobody, input: InputSet::default() }
    }

    /// Says the place in a word, for logs.
    pub(super) fn describe(&self) -> Cow<'static, str> {
        match &self.who {
            Who::Nobody => "nobody".into(),
            Who::Everybody => "everybody".into(),
            Who::Principal(principal) => principal.to_string().into(),
            Who::Session(session) => session.short().to_string().into(),
            Who::Call => "one call".into(),
        }
    }
}
