//! The party that a resource is counted for, where principals alone do not distinguish clients.

use std::net::{IpAddr, Ipv6Addr};

use trunkline_session::Principal;

/// A principal, or an address for clients without credentials, which all have the same principal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ClientParty {
    Principal(Principal),
    Address(IpAddr),
}

impl ClientParty {
    /// Returns the party of a request, by its principal and the address that it came from, if that is known.
    pub(crate) fn new(principal: &Principal, address: Option<IpAddr>) -> Self {
        match (principal, address) {
            (Principal::Anonymous, Some(address)) => Self::Address(address_key(address)),
            _ => Self::Principal(principal.clone()),
        }
    }

    /// Reports whether it is a party of its own, to which a limit can apply. The anonymous clients of this host, where a
    /// proxy may stand before the server, are many in one, and so is the process at the other end of a pipe.
    pub(crate) fn is_distinct(&self) -> bool {
        match self {
            Self::Principal(principal) => matches!(principal, Principal::Named(_)),
            Self::Address(address) => !address.is_loopback(),
        }
    }
}

/// Returns the address that identifies a host: an IPv4 address in whatever notation, and of IPv6 the network, since one
/// host there has as many addresses as it likes.
pub(crate) fn address_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_clients_are_distinguished_by_host_and_others_by_name() {
        let party = |principal: &Principal, address: &str| {
            ClientParty::new(principal, Some(address.parse().unwrap()))
        };
        let (anonymous, ann) = (Principal::Anonymous, Principal::Named("ann".into()));
        assert_eq!(party(&anonymous, "192.0.2.1"), party(&anonymous, "::ffff:192.0.2.1"));
        assert_ne!(party(&anonymous, "192.0.2.1"), party(&anonymous, "192.0.2.2"));
        assert_eq!(party(&anonymous, "2001:db8::1"), party(&anonymous, "2001:db8::2"));
        assert_ne!(party(&anonymous, "2001:db8::1"), party(&anonymous, "2001:db8:0:1::1"));
        assert_eq!(party(&ann, "192.0.2.1"), party(&ann, "192.0.2.2"));
        assert!(party(&ann, "::1").is_distinct() && party(&anonymous, "192.0.2.1").is_distinct());
        for many in
            [party(&anonymous, "127.0.0.2"), party(&anonymous, "::1"), party(&anonymous, "::ffff:127.0.0.1")]
        {
            assert!(!many.is_distinct(), "{many:?}");
        }
        assert!(!ClientParty::new(&anonymous, None).is_distinct());
    }
}
