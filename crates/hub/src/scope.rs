//! With whom a client shares what servers and the hub keep.

use trunkline_server::{Caller, Listener};
use trunkline_session::{Principal, SessionId};

use crate::options::AnonymousClients;

/// With whom a client shares what servers and the hub keep, as far as the configuration of a server leaves that open.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SharingScope {
    /// With all clients of its principal.
    Principal(Principal),
    /// With no other client, for as long as its session or connection lasts.
    Client(SessionId),
}

impl SharingScope {
    /// Returns the scope of a caller; nothing if it shares nothing with any other call, not even its own.
    pub(crate) fn of(caller: &Caller, anonymous: AnonymousClients) -> Option<Self> {
        Self::decide(&caller.principal, caller.client_id(), anonymous)
    }

    /// Returns the scope of a listener. One within this process, which is no client, has that of its principal.
    pub(crate) fn of_listener(listener: &Listener, anonymous: AnonymousClients) -> Self {
        let scope = Self::decide(&listener.principal, listener.client_id(), anonymous);
        scope.unwrap_or_else(|| Self::Principal(listener.principal.clone()))
    }

    pub(crate) fn decide(
        principal: &Principal,
        client: Option<SessionId>,
        anonymous: AnonymousClients,
    ) -> Option<Self> {
        match (principal, anonymous) {
            (Principal::Anonymous, AnonymousClients::Strangers) => client.map(Self::Client),
            (principal, _) => Some(Self::Principal(principal.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_anonymous_clients_off_the_loopback_are_strangers_to_each_other() {
        use AnonymousClients::{OnePerson, Strangers};
        let id = SessionId::random();
        let named = Principal::Named("ann".into());
        let whole = |principal: &Principal| Some(SharingScope::Principal(principal.clone()));
        for (principal, client, anonymous, expected) in [
            (&Principal::Anonymous, Some(id), OnePerson, whole(&Principal::Anonymous)),
            (&Principal::Anonymous, None, OnePerson, whole(&Principal::Anonymous)),
            (&Principal::Anonymous, Some(id), Strangers, Some(SharingScope::Client(id))),
            (&Principal::Anonymous, None, Strangers, None),
            (&named, Some(id), Strangers, whole(&named)),
            (&named, None, Strangers, whole(&named)),
            (&Principal::Process, Some(id), Strangers, whole(&Principal::Process)),
        ] {
            let scope = SharingScope::decide(principal, client, anonymous);
            assert_eq!(scope, expected, "{principal} {client:?} {anonymous:?}");
        }
    }
}
