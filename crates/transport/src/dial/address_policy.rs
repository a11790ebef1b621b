use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which addresses a [`Dialer`](super::Dialer) may connect to, checked after name resolution.
///
/// A URL that a remote server chose, such as that of its authorization server, could otherwise name a service that only
/// this machine or its network can reach (server-side request forgery, SSRF). The connection goes to the address that was
/// checked, so that a second resolution cannot change it. Behind a proxy, which resolves names itself, only hosts that are
/// written as addresses are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPolicy {
    loopback: bool,
    private: bool,
    special: bool,
}

/// What kind of network an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressKind {
    Public,
    /// This machine.
    Loopback,
    /// A private network: RFC 1918, unique local IPv6, and the shared addresses of carriers (RFC 6598).
    Private,
    /// Link-local addresses, where cloud providers have their metadata services, and all others that no public server has.
    Special,
}

impl AddressPolicy {
    /// Every address.
    pub const ANY: Self = Self { loopback: true, private: true, special: true };

    /// Only addresses of the public internet.
    pub const PUBLIC: Self = Self { loopback: false, private: false, special: false };

    /// The addresses that a server may refer to which has one of `addresses` itself: public ones, and those of its own kind
    /// of network. A server on this machine may name another one here, and a server in a company's network another one there.
    pub fn near(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut policy = Self::PUBLIC;
        for address in addresses {
            match kind(address) {
                AddressKind::Loopback => policy.loopback = true,
                AddressKind::Private => policy.private = true,
                AddressKind::Public | AddressKind::Special => {}
            }
        }
        policy
    }

    /// Reports whether a connection to an address is allowed.
    pub fn allows(self, address: IpAddr) -> bool {
        match kind(address) {
            AddressKind::Public => true,
            AddressKind::Loopback => self.loopback,
            AddressKind::Private => self.private,
            AddressKind::Special => self.special,
        }
    }
}

/// Classifies an address, by the special-purpose registries of RFC 6890.
fn kind(address: IpAddr) -> AddressKind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => match embedded_v4(address) {
            Some(inner) => kind_v4(inner),
            None => kind_v6(address),
        },
    }
}

fn kind_v4(address: Ipv4Addr) -> AddressKind {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => AddressKind::Loopback,
        (10, ..) | (192, 168, _) | (172, 16..=31, _) | (100, 64..=127, _) => AddressKind::Private,
        // This network, link-local, protocol assignments and documentation, relays, benchmarks, multicast, reserved.
        (0 | 224..=255, ..)
        | (169, 254, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18..=19, _)
        | (198, 51, 100)
        | (203, 0, 113) => AddressKind::Special,
        _ => AddressKind::Public,
    }
}

fn kind_v6(address: Ipv6Addr) -> AddressKind {
    if address.is_loopback() {
        return AddressKind::Loopback;
    }
    match address.segments() {
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        // Documentation (RFC 3849, RFC 9637), Teredo and other protocol assignments.
        [0x2001, 0xdb8 | 0..=0x1ff, ..] | [0x3fff, 0..=0xfff, ..] => AddressKind::Special,
        // Only this block is assigned to the public internet.
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Special,
    }
}

/// Returns the IPv4 address that packets to an IPv6 address end up at: mapped, compatible, translated (RFC 6052) and 6to4.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bytes = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => bytes(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_classified_by_the_network_they_reach() {
        use AddressKind::{Loopback, Private, Public, Special};
        let table = [
            ("8.8.8.8", Public),
            ("172.32.0.1", Public),
            ("100.128.0.1", Public),
            ("127.0.0.1", Loopback),
            ("127.255.0.9", Loopback),
            ("10.1.2.3", Private),
            ("172.16.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.1.1", Private),
            ("100.64.0.1", Private),
            ("0.0.0.0", Special),
            ("169.254.169.254", Special),
            ("192.0.0.192", Special),
            ("198.18.0.1", Special),
            ("224.0.0.1", Special),
            ("255.255.255.255", Special),
            ("2606:4700::1111", Public),
            ("::1", Loopback),
            ("::", Special),
            ("fd00::1", Private),
            ("fe80::1", Special),
            ("ff02::1", Special),
            ("2001:db8::1", Special),
            ("2001::1", Special),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:10.0.0.1", Private),
            ("::ffff:169.254.169.254", Special),
            ("::ffff:8.8.8.8", Public),
            ("::127.0.0.1", Loopback),
            ("64:ff9b::a9fe:a9fe", Special),
            ("64:ff9b:1::1", Special),
            ("2002:7f00:1::", Loopback),
            ("2002:a00:1::", Private),
        ];
        for (address, expected) in table {
            assert_eq!(kind(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn server_may_refer_only_to_public_addresses_and_its_own_network() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let table = [
            ("8.8.8.8", ["1.1.1.1"].as_slice(), ["127.0.0.1", "10.0.0.1", "169.254.169.254"].as_slice()),
            ("127.0.0.1", &["1.1.1.1", "::1"], &["10.0.0.1", "169.254.169.254"]),
            ("10.0.0.1", &["1.1.1.1", "192.168.0.1"], &["127.0.0.1", "169.254.169.254"]),
            ("169.254.169.254", &["1.1.1.1"], &["169.254.169.254", "127.0.0.1"]),
        ];
        for (peer, allowed, refused) in table {
            let policy = AddressPolicy::near([address(peer)]);
            for other in allowed {
                assert!(policy.allows(address(other)), "{peer} may refer to {other}");
            }
            for other in refused {
                assert!(!policy.allows(address(other)), "{peer} may not refer to {other}");
                assert!(AddressPolicy::ANY.allows(address(other)));
            }
        }
    }
}
