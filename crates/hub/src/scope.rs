//! The scope within which clients share upstream connections and the hub's state.
//!
//! # Invariants
//!
//! - Unrelated anonymous clients share no upstream state: `isolated_anonymous_clients_share_no_server_state`.
//! - A resource update is delivered only to the anonymous clients that subscribed to it:
//!   `resource_update_is_not_sent_to_another_anonymous_client`.

use trunkline_server::{Caller, ChangeSubscriber};
use trunkline_session::{Principal, SessionId};

use crate::options::AnonymousClients;

/// The clients that share upstream connections and the hub's state with each other, unless the configuration of a
/// server decides that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SharingScope {
    /// Shared by all clients of one principal.
    Principal(Principal),
    /// Private to one client, for as long as its session or connection lasts.
    Client(SessionId),
}

impl SharingScope {
    /// Returns the scope of a caller; `None` if it shares nothing with any other call, not even with the client's
    /// own.
    pub(crate) fn of_caller(caller: &Caller, anonymous: AnonymousClients) -> Option<Self> {
        Self::decide(&caller.principal, caller.client_id(), anonymous)
    }

    /// Returns the scope of a listener. A listener within this process has no client id and gets the scope of its
    /// principal.
    pub(crate) fn of_listener(listener: &ChangeSubscriber, anonymous: AnonymousClients) -> Self {
        let scope = Self::decide(&listener.principal, listener.client_id(), anonymous);
        scope.unwrap_or_else(|| Self::Principal(listener.principal.clone()))
    }

    pub(crate) fn decide(
        principal: &Principal,
        client: Option<SessionId>,
        anonymous: AnonymousClients,
    ) -> Option<Self> {
        match (principal, anonymous) {
            (Principal::Anonymous, AnonymousClients::Isolated) => client.map(Self::Client),
            (principal, _) => Some(Self::Principal(principal.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_isolated_anonymous_clients_have_a_client_scope() {
        use AnonymousClients::{Isolated, SingleUser};
        let id = SessionId::random();
        let named = Principal::Named("ann".into());
        let whole = |principal: &Principal| Some(SharingScope::Principal(principal.clone()));
        for (principal, client, anonymous, expected) in [
            (&Principal::Anonymous, Some(id), SingleUser, whole(&Principal::Anonymous)),
            (&Principal::Anonymous, None, SingleUser, whole(&Principal::Anonymous)),
            (&Principal::Anonymous, Some(id), Isolated, Some(SharingScope::Client(id))),
            (&Principal::Anonymous, None, Isolated, None),
            (&named, Some(id), Isolated, whole(&named)),
            (&named, None, Isolated, whole(&named)),
            (&Principal::Process, Some(id), Isolated, whole(&Principal::Process)),
        ] {
            let scope = SharingScope::decide(principal, client, anonymous);
            assert_eq!(scope, expected, "{principal} {client:?} {anonymous:?}");
        }
    }
}
