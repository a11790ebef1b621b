use std::borrow::Cow;

use tokio::time::Instant;
use trunkline_client::config::pinned_era;
use trunkline_config::ConnectionSharing;
use trunkline_protocol::model::ClientCapabilities;
use trunkline_protocol::{Era, LoggingLevel, Method};
use trunkline_server::Context;
use trunkline_session::{Principal, SessionId};

use super::Upstream;
use super::connection::ConnectionScope;
use super::era::{KnownEras, choose_era, default_era};
use super::input::InputSet;
use super::listing_key::ListingKey;
use super::roots::{KnownRoots, roots_digest};
use super::status::KnownServer;
use crate::options::AnonymousClients;
use crate::scope::SharingScope;

/// For whom a connection is needed.
#[derive(Clone, Debug)]
pub(crate) struct CallerProfile {
    principal: Principal,
    session: Option<SessionId>,
    connection: Option<SessionId>,
    /// The era that it speaks, or in which a call of it has begun.
    era: Era,
    /// Whether the server may ask something within the call that the connection is for.
    allows_input: bool,
    capabilities: ClientCapabilities,
    /// The mildest log message that it wants, if it wants any.
    log_level: Option<LoggingLevel>,
    input: InputSet,
    /// Its roots, as far as they are known.
    pub(crate) roots: Option<KnownRoots>,
}

/// What a call still has to know of its party once it has a connection.
#[derive(Debug)]
pub(crate) struct CallerDetails {
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) input: InputSet,
    pub(crate) log_level: Option<LoggingLevel>,
}

/// Which connections serve a party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PoolKey {
    pub(super) scope: ConnectionScope,
    /// Whose connections these are when there are too many; nothing if they are kept for all or for none.
    pub(super) owner: Option<ClientKey>,
    pub(super) input: InputSet,
    /// The era that is spoken.
    pub(super) era: Era,
}

/// What tells one client from another where several compete for connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ClientKey {
    /// A client with a session. What it is asked is put to the session, whichever of its calls caused it, so that its calls may
    /// be asked something over one connection at one time.
    Session(SessionId),
    /// A client without one that is known by its connection. What it is asked is put to one of its calls.
    Connection(SessionId),
    /// All clients of a principal that are not known from one call to the next.
    Principal(Principal),
}

impl ClientKey {
    /// Reports whether another call is certainly one of the same client.
    pub(super) fn is_same_client(&self, other: &Self) -> bool {
        !matches!(self, Self::Principal(_)) && self == other
    }

    /// Reports whether another call may be asked something beside one of this client.
    pub(super) fn may_share_with(&self, other: &Self) -> bool {
        matches!(self, Self::Session(_)) && self == other
    }
}

impl CallerProfile {
    /// Describes the caller of a request.
    pub(crate) fn from_context(context: &Context) -> Self {
        context.with_caller(|caller| {
            let capabilities = without_tasks(caller.capabilities());
            Self {
                principal: caller.principal.clone(),
                session: caller.session,
                connection: caller.connection,
                era: caller.revision.era(),
                allows_input: false,
                log_level: caller.log_level,
                input: InputSet::from_capabilities(&capabilities),
                capabilities,
                roots: None,
            }
        })
    }

    /// Returns what the lists that it sees depend on.
    pub(crate) fn listing_key(&self) -> ListingKey {
        ListingKey { era: self.era, input: self.input }
    }

    /// Notes what the connection is for.
    pub(crate) fn for_method(self, method: Method) -> Self {
        Self { allows_input: method.may_require_input(), ..self }
    }

    /// Returns the client that competes with others for connections.
    pub(super) fn client_key(&self) -> ClientKey {
        match (self.session, self.connection) {
            (Some(session), _) => ClientKey::Session(session),
            (None, Some(connection)) => ClientKey::Connection(connection),
            (None, None) => ClientKey::Principal(self.principal.clone()),
        }
    }

    /// Goes on in the era in which a call has begun, whatever the caller speaks.
    pub(crate) fn in_era(self, era: Option<Era>) -> Self {
        Self { era: era.unwrap_or(self.era), ..self }
    }

    /// Reports whether the server may put a question to it within the call, over a connection of such a place.
    pub(super) fn can_be_asked(&self, place: &PoolKey) -> bool {
        self.allows_input && place.input.has_user_input()
    }

    /// Reports whether it can be asked for its roots.
    pub(crate) fn has_roots(&self) -> bool {
        self.input.has_roots()
    }

    /// Notes its roots.
    pub(crate) fn with_roots(self, roots: Option<Vec<trunkline_protocol::model::Root>>) -> Self {
        Self { roots: roots.map(|roots| (roots_digest(&roots), roots)), ..self }
    }

    /// Forgets what was needed to find a connection.
    pub(crate) fn into_caller(self) -> CallerDetails {
        CallerDetails { capabilities: self.capabilities, input: self.input, log_level: self.log_level }
    }

    /// Returns which connections serve it, given the era that is spoken and what is known of the server in it.
    fn pool_key(
        &self,
        share: ConnectionSharing,
        anonymous: AnonymousClients,
        era: Era,
        known: Option<&KnownServer>,
    ) -> PoolKey {
        let keeps_sessions = known.is_none_or(|known| known.is_stateful);
        let client = self.session.or(self.connection);
        let scope = SharingScope::decide(&self.principal, client, anonymous);
        let who = match (share, self.session) {
            (ConnectionSharing::Call, _) => ConnectionScope::Call,
            (ConnectionSharing::Session, Some(session)) => ConnectionScope::Session(session),
            (ConnectionSharing::All, _) => ConnectionScope::Shared,
            // What a server without sessions is told in one request is forgotten in the next.
            (ConnectionSharing::Principal, _) if !keeps_sessions => ConnectionScope::Shared,
            (ConnectionSharing::Principal | ConnectionSharing::Session, _) => match &scope {
                Some(SharingScope::Principal(principal)) => ConnectionScope::Principal(principal.clone()),
                Some(SharingScope::Client(client)) => ConnectionScope::Session(*client),
                None => ConnectionScope::Call,
            },
        };
        let input = match known {
            _ if share == ConnectionSharing::All => InputSet::default(),
            Some(known) if known.is_stateful => self.input.usable_in(known.revision),
            // Such a server is told with each request what it may ask.
            Some(_) => InputSet::default(),
            None => self.input,
        };
        let owner = match (&who, scope) {
            (ConnectionScope::Unassigned | ConnectionScope::Shared, _) => None,
            (_, Some(SharingScope::Client(_))) => Some(self.client_key()),
            (_, Some(SharingScope::Principal(_)) | None) => {
                Some(ClientKey::Principal(self.principal.clone()))
            }
        };
        PoolKey { scope: who, owner, input, era }
    }
}

impl Upstream {
    /// Returns which connections serve a party, given what is known of the server by now.
    pub(super) fn pool_key_of(&self, party: &CallerProfile, eras: &KnownEras) -> PoolKey {
        let config = self.config.load();
        let era = choose_era(party.era, pinned_era(&config), eras.supported(Instant::now()));
        party.pool_key(config.sharing, self.options.anonymous, era, eras.known_in(era).map(|known| &**known))
    }

    /// Reports whether a party is known to the server from one request to the next, as far as it is known.
    pub(crate) fn is_stateful_for(&self, party: &CallerProfile) -> bool {
        let desk = self.lock();
        let era = self.pool_key_of(party, &desk.eras).era;
        desk.eras.known_in(era).is_none_or(|known| known.is_stateful)
    }
}

/// The extension by which results may be tasks, which are not carried.
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn without_tasks(capabilities: ClientCapabilities) -> ClientCapabilities {
    if capabilities.extension(TASKS_EXTENSION).is_none() {
        return capabilities;
    }
    capabilities.without_extension(TASKS_EXTENSION)
}

impl PoolKey {
    /// The place of a connection that is made before anybody needs it.
    pub(super) fn unassigned() -> Self {
        Self {
            scope: ConnectionScope::Unassigned,
            owner: None,
            input: InputSet::default(),
            era: default_era(),
        }
    }

    /// The place of a connection over which changes of resources are watched.
    pub(super) fn for_subscription(who: &ConnectionScope) -> Self {
        let owner = match who {
            ConnectionScope::Unassigned | ConnectionScope::Shared | ConnectionScope::Call => None,
            ConnectionScope::Principal(principal) => Some(ClientKey::Principal(principal.clone())),
            ConnectionScope::Session(session) => Some(ClientKey::Session(*session)),
        };
        Self { scope: who.clone(), owner, input: InputSet::default(), era: default_era() }
    }

    /// Says the place in a word, for logs.
    pub(super) fn describe(&self) -> Cow<'static, str> {
        match &self.scope {
            ConnectionScope::Unassigned => "unassigned".into(),
            ConnectionScope::Shared => "shared".into(),
            ConnectionScope::Principal(principal) => principal.to_string().into(),
            ConnectionScope::Session(session) => session.short().to_string().into(),
            ConnectionScope::Call => "one call".into(),
        }
    }
}
