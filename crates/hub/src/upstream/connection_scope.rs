use trunkline_server::ChangeSubscriber;
use trunkline_session::{Principal, SessionId};

use crate::options::AnonymousClients;
use crate::scope::SharingScope;

/// The clients that may use a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ConnectionScope {
    /// Not assigned yet: it was opened to fetch the lists, and the first matching caller may claim it.
    Unassigned,
    /// Shared by all clients.
    Shared,
    /// Of one principal.
    Principal(Principal),
    /// Of one client, by its session or connection.
    Session(SessionId),
    /// Of one call.
    Call,
}

impl ConnectionScope {
    /// Reports whether a listener receives change notifications of connections with this scope.
    pub(crate) fn includes(&self, listener: &ChangeSubscriber, anonymous: AnonymousClients) -> bool {
        match self {
            Self::Principal(principal) => {
                let scope = SharingScope::of_listener(listener, anonymous);
                *principal == listener.principal && !matches!(scope, SharingScope::Client(_))
            }
            Self::Session(client) => listener.client_id() == Some(*client),
            Self::Shared => true,
            Self::Unassigned | Self::Call => false,
        }
    }
}
