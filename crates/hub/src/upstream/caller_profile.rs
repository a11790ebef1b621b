use std::borrow::Cow;
use std::net::IpAddr;

use tokio::time::Instant;
use trunkline_client::config::pinned_era;
use trunkline_config::{ConnectionSharing, ServerConfig, ServerLocation};
use trunkline_protocol::model::ClientCapabilities;
use trunkline_protocol::{Era, LoggingLevel, Method};
use trunkline_server::{Context, Env, SessionRoots};
use trunkline_session::{Principal, SessionId};

use super::Upstream;
use super::caller_variables::CallerVariables;
use super::connection_scope::ConnectionScope;
use super::era::{choose_era, default_era};
use super::eviction::SlotOwner;
use super::input::InputSet;
use super::listing_key::ListingKey;
use super::roots::{KnownRoots, roots_digest};
use super::status::KnownServer;
use super::upstream_state::UpstreamState;
use crate::options::{AnonymousClients, HubOptions};
use crate::scope::SharingScope;

/// The caller that needs a connection.
#[derive(Clone, Debug)]
pub(crate) struct CallerProfile {
    principal: Principal,
    session: Option<SessionId>,
    connection: Option<SessionId>,
    /// The host that it came from; `None` if that is this one, where a proxy may stand before the hub.
    host: Option<IpAddr>,
    /// Its own era, or the one in which its resumed call began.
    era: Era,
    /// Whether the server may request input within the call that the connection is for.
    allows_input: bool,
    /// Whether the connection is for lists that other callers see too, so that it must not be the caller's own.
    is_for_lists: bool,
    capabilities: ClientCapabilities,
    /// The lowest log level that it wants, if any.
    log_level: Option<LoggingLevel>,
    input: InputSet,
    env: Env,
    /// Its roots, as far as they are known.
    pub(crate) roots: Option<KnownRoots>,
    /// Where they can be requested outside of calls.
    pub(super) session_roots: Option<SessionRoots>,
}

/// The part of a caller's profile that a call needs once it has a connection.
#[derive(Debug)]
pub(crate) struct CallerDetails {
    pub(crate) capabilities: ClientCapabilities,
    pub(crate) input: InputSet,
    pub(crate) log_level: Option<LoggingLevel>,
}

/// The key of the pool of connections that serve a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PoolKey {
    pub(super) scope: ConnectionScope,
    /// The owner that the connections count against for eviction; `None` if they are shared or unassigned.
    pub(super) owner: Option<SlotOwner<ClientKey>>,
    pub(super) input: InputSet,
    /// The era of the connections.
    pub(super) era: Era,
    /// The variables that the server got of the caller.
    pub(super) variables: CallerVariables,
}

/// Identifies a client that competes for connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ClientKey {
    /// A client with a session. Input requests go to the session, whichever of its calls caused them, so that several
    /// of its calls may require input over one connection.
    Session(SessionId),
    /// A client without a session, identified by its connection. Input requests go to one of its calls.
    Connection(SessionId),
    /// All clients of a principal that cannot be recognised from one call to the next.
    Principal(Principal),
    /// All anonymous clients from one host, which may have as many sessions as it likes.
    Host(IpAddr),
}

impl ClientKey {
    /// Reports whether another call is certainly of the same client.
    pub(super) fn is_same_client(&self, other: &Self) -> bool {
        !matches!(self, Self::Principal(_) | Self::Host(_)) && self == other
    }

    /// Reports whether another call may require input beside one of this client.
    pub(super) fn may_share_with(&self, other: &Self) -> bool {
        matches!(self, Self::Session(_)) && self == other
    }
}

impl CallerProfile {
    /// Returns the profile of a request's caller.
    pub(crate) fn from_context(context: &Context) -> Self {
        context.with_caller(|caller| {
            let capabilities = without_tasks(caller.capabilities());
            Self {
                principal: caller.principal.clone(),
                session: caller.session,
                connection: caller.connection,
                host: caller.remote_host().filter(|host| !host.is_loopback()),
                era: caller.revision.era(),
                allows_input: false,
                is_for_lists: false,
                log_level: caller.log_level,
                input: InputSet::from_capabilities(&capabilities),
                capabilities,
                env: caller.env.clone(),
                roots: None,
                session_roots: context.session_roots(),
            }
        })
    }

    /// Returns the key of the lists that it sees.
    pub(crate) fn listing_key(&self) -> ListingKey {
        ListingKey { era: self.era, input: self.input }
    }

    /// Sets the method that the connection is for.
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

    /// Returns the party that competes with others for connections, however many clients it has.
    pub(super) fn party_key(&self, anonymous: AnonymousClients) -> ClientKey {
        match SharingScope::decide(&self.principal, self.session.or(self.connection), anonymous) {
            Some(SharingScope::Principal(principal)) => ClientKey::Principal(principal),
            Some(SharingScope::Client(_)) | None => {
                self.host.map_or_else(|| self.client_key(), ClientKey::Host)
            }
        }
    }

    /// Sets the era in which a resumed call began, whatever the caller's own.
    pub(crate) fn in_era(self, era: Option<Era>) -> Self {
        Self { era: era.unwrap_or(self.era), ..self }
    }

    /// Reports whether the server may request input from it within the call, over a connection with this key.
    pub(super) fn can_be_asked(&self, key: &PoolKey) -> bool {
        self.allows_input && key.input.has_user_input()
    }

    /// Reports whether it has a session, in which it can be sent requests within any call.
    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Reports whether it can provide roots.
    pub(crate) fn has_roots(&self) -> bool {
        self.input.has_roots()
    }

    /// Sets its roots.
    pub(crate) fn with_roots(self, roots: Option<Vec<trunkline_protocol::model::Root>>) -> Self {
        Self { roots: roots.map(|roots| (roots_digest(&roots), roots)), ..self }
    }

    /// Drops what was only needed to find a connection.
    pub(crate) fn into_caller(self) -> CallerDetails {
        CallerDetails { capabilities: self.capabilities, input: self.input, log_level: self.log_level }
    }

    /// Returns the profile by which lists are fetched that all callers with its capabilities see.
    pub(super) fn for_lists(&self, options: &HubOptions) -> Self {
        // Other callers see the lists too, so they are fetched without variables of the caller.
        let profile = Self { env: Env::default(), ..self.clone() };
        match self.party_key(options.anonymous).is_one_of_several(options) {
            true => {
                Self { is_for_lists: true, allows_input: false, roots: None, session_roots: None, ..profile }
            }
            false => profile,
        }
    }

    /// Returns the profile by which the lists of a key are fetched.
    pub(super) fn of_lists(key: ListingKey) -> Self {
        Self {
            principal: Principal::Process,
            session: None,
            connection: None,
            host: None,
            era: key.era,
            allows_input: false,
            is_for_lists: true,
            capabilities: key.input.capabilities(),
            log_level: None,
            input: key.input,
            env: Env::default(),
            roots: None,
            session_roots: None,
        }
    }

    /// Returns the key of the connections that serve it, from the chosen era and what is known of the server in it.
    fn pool_key(
        &self,
        config: &ServerConfig,
        anonymous: AnonymousClients,
        era: Era,
        known: Option<&KnownServer>,
    ) -> PoolKey {
        let (share, keeps_state) = (config.sharing, keeps_state(&config.location, known));
        let client = self.session.or(self.connection);
        let scope = SharingScope::decide(&self.principal, client, anonymous);
        let connection_scope = match (share, self.session) {
            (ConnectionSharing::Call, _) => ConnectionScope::Call,
            (ConnectionSharing::Session, Some(session)) => ConnectionScope::Session(session),
            (ConnectionSharing::All, _) => ConnectionScope::Shared,
            // All principals can share a connection over which nothing is kept from one request to the next.
            (ConnectionSharing::Principal, _) if !keeps_state => ConnectionScope::Shared,
            (ConnectionSharing::Principal | ConnectionSharing::Session, _) => match &scope {
                Some(SharingScope::Principal(principal)) => ConnectionScope::Principal(principal.clone()),
                Some(SharingScope::Client(client)) => ConnectionScope::Session(*client),
                None => ConnectionScope::Call,
            },
        };
        let connection_scope = match connection_scope {
            ConnectionScope::Shared => ConnectionScope::Shared,
            _ if self.is_for_lists => ConnectionScope::Unassigned,
            of_caller => of_caller,
        };
        let input = match known {
            _ if share == ConnectionSharing::All => InputSet::default(),
            Some(known) if known.is_stateful => self.input.usable_in(known.revision),
            // A stateless server gets the capabilities with each request.
            Some(_) => InputSet::default(),
            None => self.input,
        };
        let owner = match (&connection_scope, scope) {
            (ConnectionScope::Unassigned | ConnectionScope::Shared, _) => None,
            (_, Some(SharingScope::Client(_))) => Some(self.client_key()),
            (_, Some(SharingScope::Principal(_)) | None) => {
                Some(ClientKey::Principal(self.principal.clone()))
            }
        };
        let owner = owner.map(|client| SlotOwner { party: self.party_key(anonymous), client });
        PoolKey { scope: connection_scope, owner, input, era, variables: CallerVariables::default() }
    }
}

impl Upstream {
    /// Returns the key of the connections that serve a caller, from the current knowledge of the server.
    pub(super) fn pool_key_of(&self, profile: &CallerProfile, state: &UpstreamState) -> PoolKey {
        let config = self.config.load();
        let era = choose_era(profile.era, pinned_era(&config), state.supported_eras(Instant::now()));
        let known = state.eras.known_in(era).map(|known| &**known);
        let key = profile.pool_key(&config, self.options.anonymous, era, known);
        let variables = CallerVariables::for_server(&config, &profile.env);
        // Variables multiply shared connections, which then count for the caller that has them.
        let own =
            || SlotOwner { party: profile.party_key(self.options.anonymous), client: profile.client_key() };
        let owner = key.owner.or_else(|| (!variables.is_empty()).then(own));
        PoolKey { variables, owner, ..key }
    }

    /// Reports whether the server is stateful in the caller's era; true if that is not known.
    pub(crate) fn is_stateful_for(&self, profile: &CallerProfile) -> bool {
        let state = self.lock();
        let era = self.pool_key_of(profile, &state).era;
        state.eras.known_in(era).is_none_or(|known| known.is_stateful)
    }
}

/// Reports whether a server may keep state of its callers. A stateless revision keeps none over its connection, but a
/// program may have it in its memory, of which each caller has its own only with a process of its own.
pub(super) fn keeps_state(location: &ServerLocation, known: Option<&KnownServer>) -> bool {
    matches!(location, ServerLocation::Program(_)) || known.is_none_or(|known| known.is_stateful)
}

/// The extension for task results, which are not relayed.
const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn without_tasks(capabilities: ClientCapabilities) -> ClientCapabilities {
    if capabilities.extension(TASKS_EXTENSION).is_none() {
        return capabilities;
    }
    capabilities.without_extension(TASKS_EXTENSION)
}

impl PoolKey {
    /// The key of a connection that is opened before the first call.
    pub(super) fn unassigned() -> Self {
        Self {
            scope: ConnectionScope::Unassigned,
            owner: None,
            input: InputSet::default(),
            era: default_era(),
            variables: CallerVariables::default(),
        }
    }

    /// The key of a connection for resource subscriptions.
    pub(super) fn for_subscription(scope: &ConnectionScope) -> Self {
        let owner = match scope {
            ConnectionScope::Unassigned | ConnectionScope::Shared | ConnectionScope::Call => None,
            ConnectionScope::Principal(principal) => Some(ClientKey::Principal(principal.clone())),
            ConnectionScope::Session(session) => Some(ClientKey::Session(*session)),
        };
        let owner = owner.map(SlotOwner::alone);
        Self { scope: scope.clone(), owner, ..Self::unassigned() }
    }

    /// Describes the scope, for logs.
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
