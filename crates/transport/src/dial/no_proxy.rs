use std::net::IpAddr;

/// Hosts that are reached directly, as listed in `NO_PROXY`.
///
/// An entry is `*`, an IP address, a network such as `10.0.0.0/8`, or a domain, which also matches its subdomains; a
/// port may follow. A malformed entry matches nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct NoProxyList {
    entries: Vec<NoProxyEntry>,
}

#[derive(Clone, Debug)]
struct NoProxyEntry {
    hosts: HostPattern,
    port: Option<u16>,
}

#[derive(Clone, Debug)]
enum HostPattern {
    All,
    Network(IpAddr, u32),
    /// In lower case and without a leading dot.
    Domain(String),
}

impl NoProxyList {
    pub(super) fn read(text: &str) -> Self {
        let entries = text.split([',', ' ']).map(str::trim).filter_map(NoProxyEntry::read);
        Self { entries: entries.collect() }
    }

    pub(super) fn contains(&self, host: &str, port: u16) -> bool {
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        self.entries.iter().any(|entry| {
            entry.port.is_none_or(|own| own == port)
                && match (&entry.hosts, address) {
                    (HostPattern::All, _) => true,
                    (HostPattern::Network(network, bits), Some(address)) => {
                        is_within(address, *network, *bits)
                    }
                    (HostPattern::Domain(domain), None) => {
                        let host = host.trim_end_matches('.');
                        let above = host.strip_suffix(domain.as_str());
                        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
                    }
                    _ => false,
                }
        })
    }
}

impl NoProxyEntry {
    fn read(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        if text == "*" {
            return Some(Self { hosts: HostPattern::All, port: None });
        }
        if let Some(hosts) = network(text) {
            return Some(Self { hosts, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (text, None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let hosts = network(host).unwrap_or_else(|| {
            let domain = host.trim_start_matches('*').trim_matches('.').to_ascii_lowercase();
            HostPattern::Domain(domain)
        });
        match &hosts {
            HostPattern::Domain(domain) if domain.is_empty() => None,
            _ => Some(Self { hosts, port }),
        }
    }
}

/// Parses an IP address, or a network in CIDR notation.
fn network(text: &str) -> Option<HostPattern> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address = address.parse::<IpAddr>().ok()?.to_canonical();
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(width), |bits| bits.parse().ok().filter(|bits| *bits <= width))?;
    Some(HostPattern::Network(address, bits))
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    // Both families as numbers of 128 bits, with the prefix in the high bits.
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    };
    let differing = number(address) ^ number(network);
    address.is_ipv4() == network.is_ipv4() && differing.leading_zeros() >= bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_entries_match_hosts_subdomains_networks_and_ports() {
        // The list, the host, its port, and whether it is reached without a proxy.
        let table = [
            ("example.com", "example.com", 80, true),
            ("example.com", "a.example.com", 80, true),
            (".example.com", "example.com", 80, true),
            ("*.example.com", "a.b.example.com", 80, true),
            ("Example.COM.", "example.com", 80, true),
            ("example.com", "example.com.", 80, true),
            ("example.com", "badexample.com", 80, false),
            ("example.com", "example.com.evil.example", 80, false),
            ("a, example.com ,b", "example.com", 80, true),
            ("a example.com", "example.com", 80, true),
            ("example.com:8080", "example.com", 8080, true),
            ("example.com:8080", "example.com", 80, false),
            ("*", "anything.example", 80, true),
            ("", "example.com", 80, false),
            (",.,*.", "example.com", 80, false),
            ("10.0.0.0/8", "10.200.3.4", 80, true),
            ("10.0.0.0/8", "11.0.0.1", 80, false),
            ("10.0.0.0/33", "10.0.0.0", 80, false),
            ("0.0.0.0/0", "1.2.3.4", 80, true),
            ("192.168.1.1", "192.168.1.1", 80, true),
            ("192.168.1.1:81", "192.168.1.1", 81, true),
            ("192.168.1.1:81", "192.168.1.1", 80, false),
            ("fd00::/8", "fd12::1", 80, true),
            ("[fd00::1]:81", "fd00::1", 81, true),
            ("fd00::1", "fd00::2", 80, false),
            ("0.0.0.0/0", "::1", 80, false),
            ("1.1", "1.1.1.1", 80, false),
        ];
        for (list, host, port, expected) in table {
            assert_eq!(NoProxyList::read(list).contains(host, port), expected, "{list} {host}:{port}");
        }
    }
}
