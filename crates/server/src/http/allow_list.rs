use std::sync::atomic::{AtomicBool, Ordering};

use http::uri::Authority;
use trunkline_protocol::Refusal;
use trunkline_protocol::era::HeaderOccurrence;

use super::mcp_headers::McpHeaders;

/// The values that a `Host` or `Origin` header may have.
///
/// A page that a browser loaded from elsewhere can reach a server on this machine (DNS rebinding); these two headers,
/// which a page cannot forge, reveal such a request. Names are compared completely and case-insensitively; a trailing
/// dot is not ignored, since no honest client sends one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList {
    any: bool,
    loopback: bool,
    names: Vec<String>,
}

impl AllowList {
    /// Allows `localhost` and the loopback addresses, with any port.
    pub const fn loopback() -> Self {
        Self { any: false, loopback: true, names: Vec::new() }
    }

    /// Allows every value.
    pub const fn any() -> Self {
        Self { any: true, loopback: false, names: Vec::new() }
    }

    /// Allows a further value: a host such as `example.com` or `example.com:8443`, or an origin such as
    /// `https://example.com`.
    #[must_use]
    pub fn and(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into());
        self
    }

    /// Reports whether a text can be the value of `Host`: `example.com`, `example.com:8443` or `[2001:db8::1]`.
    pub fn is_host(text: &str) -> bool {
        split_authority(text).is_some()
    }

    /// Reports whether a text can be an origin as browsers write it: `https://example.com`, with a port only where it
    /// is not the scheme's default, and nothing after it.
    pub fn is_origin(text: &str) -> bool {
        let Some((scheme, authority)) = text.split_once("://") else { return false };
        let begins = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
        let is_scheme =
            scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        let own = match scheme.to_ascii_lowercase().as_str() {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        let plain = split_authority(authority).is_some_and(|(_, port)| port.is_none() || port != own);
        begins && is_scheme && plain
    }

    fn allows_host(&self, host: &str) -> bool {
        self.any
            || (self.loopback && is_plain_loopback(host))
            || split_authority(host).is_some_and(|(name, _)| {
                (self.loopback && is_loopback(name)) || self.names_include(name) || self.names_include(host)
            })
    }

    /// Reports whether pages of an origin may call.
    pub(super) fn allows_origin(&self, origin: &str) -> bool {
        self.any || self.lists_origin(origin)
    }

    /// Reports whether an origin is on the list itself, and not allowed only because all are.
    pub(super) fn lists_origin(&self, origin: &str) -> bool {
        if self.names_include(origin) {
            return true;
        }
        let scheme_end = origin.find("://").filter(|at| matches!(*at, 4 | 5));
        let Some((scheme, authority)) =
            scheme_end.and_then(|at| Some((origin.get(..at)?, origin.get(at + 3..)?)))
        else {
            return false;
        };
        let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
        self.loopback && is_web && split_authority(authority).is_some_and(|(name, _)| is_loopback(name))
    }

    fn names_include(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Splits an authority into its host and port; `None` if it is anything else, such as one that names a user.
fn split_authority(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) =
        match text.rfind(':').filter(|at| !text.get(*at..).is_some_and(|rest| rest.contains(']'))) {
            Some(at) => (text.get(..at)?, Some(text.get(at + 1..)?)),
            None => (text, None),
        };
    let port = match port {
        None => None,
        Some(digits) if digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok().filter(|port| *port != 0)?)
        }
        Some(_) => return None,
    };
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let legal = match inner {
        Some(address) => address.bytes().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.')),
        None => host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_')),
    };
    (legal && !host.is_empty()).then_some((host, port))
}

/// Fast path: reports whether a `Host` is that of nearly every request, the loopback address as clients write it.
fn is_plain_loopback(host: &str) -> bool {
    let rest = host.strip_prefix("127.0.0.1:").or_else(|| host.strip_prefix("localhost:"));
    rest.is_some_and(|port| {
        port.starts_with(|first| matches!(first, '1'..='9')) && port.parse::<u16>().is_ok()
    })
}

fn is_loopback(name: &str) -> bool {
    name == "127.0.0.1" || name == "[::1]" || name.eq_ignore_ascii_case("localhost")
}

/// Checks the `Host` and the `Origin` of a request.
///
/// # Errors
/// Either is not allowed, is repeated, or is not text.
pub(super) fn check(
    headers: &McpHeaders<'_>,
    authority: Option<&Authority>,
    hosts: &AllowList,
    origins: &AllowList,
) -> Result<(), DisallowedHeader> {
    let host_ok = match single(headers.host).ok_or(DisallowedHeader::Host)? {
        Some(host) => hosts.allows_host(host) && authority.is_none_or(|named| named.as_str() == host),
        // HTTP/2 has the host in `:authority` instead (RFC 9113 §8.3.1).
        None => authority.map_or(hosts.any, |named| hosts.allows_host(named.as_str())),
    };
    if !host_ok {
        return Err(DisallowedHeader::Host);
    }
    let origin = single(headers.origin).ok_or(DisallowedHeader::Origin)?;
    if origin.is_none_or(|origin| origins.allows_origin(origin)) {
        Ok(())
    } else {
        Err(DisallowedHeader::Origin)
    }
}

/// Returns the value of a header that may occur once; `None` if it is repeated, or is not text.
fn single(header: HeaderOccurrence<'_>) -> Option<Option<&str>> {
    match header {
        HeaderOccurrence::Absent => Some(None),
        HeaderOccurrence::Once(value) => std::str::from_utf8(value).map(Some).ok(),
        HeaderOccurrence::Repeated => None,
    }
}

/// The header of a request that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DisallowedHeader {
    Host,
    Origin,
}

/// Which of the two headers was warned of: a peer can be refused any number of times, and the operator needs the
/// reason once.
#[derive(Debug, Default)]
pub(super) struct HeaderWarnings {
    host: AtomicBool,
    origin: AtomicBool,
}

impl HeaderWarnings {
    /// Returns the refusal of such a request. The log has the reason and not the value, which the peer controls.
    #[cold]
    pub(super) fn refuse(&self, disallowed: DisallowedHeader) -> Refusal {
        let (warned, reason) = match disallowed {
            DisallowedHeader::Host => {
                (&self.host, "its Host is not one that clients may reach this server by")
            }
            DisallowedHeader::Origin => (&self.origin, "its Origin is not one whose pages may call"),
        };
        if !warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("refused a request: {reason}; further ones are not told");
        }
        Refusal::FORBIDDEN_ORIGIN
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::{HOST, ORIGIN};

    use super::*;

    fn passes(host: Option<&str>, origin: Option<&str>, hosts: &AllowList, origins: &AllowList) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if let Some(value) = value {
                headers.append(name, value.parse().unwrap());
            }
        }
        check(&McpHeaders::from_map(&headers), None, hosts, origins).is_ok()
    }

    #[test]
    fn allowed_hosts_default_to_loopback_names() {
        let list = AllowList::loopback();
        for (host, allowed) in [
            ("localhost", true),
            ("LOCALHOST:7411", true),
            ("127.0.0.1:80", true),
            ("[::1]:7411", true),
            ("localhost.", false),
            ("localhost:", false),
            ("localhost:0", false),
            ("localhost:99999", false),
            ("127.0.0.2", false),
            ("127.0.0.1.evil.example", false),
            ("evil.example", false),
            ("evil.example:7411", false),
            ("user@localhost", false),
            ("localhost@evil.example", false),
            ("0.0.0.0", false),
            ("[::ffff:127.0.0.1]", false),
            ("", false),
            ("localhost, evil.example", false),
        ] {
            assert_eq!(passes(Some(host), None, &list, &list), allowed, "{host}");
        }
        assert!(!passes(None, None, &list, &list), "a request must name its host");
    }

    #[test]
    fn allowed_origins_default_to_loopback() {
        let list = AllowList::loopback();
        for (origin, allowed) in [
            ("http://localhost:3000", true),
            ("https://localhost", true),
            ("http://127.0.0.1:7411", true),
            ("http://[::1]:7411", true),
            ("null", false),
            ("http://evil.example", false),
            ("http://localhost.evil.example", false),
            ("http://localhost@evil.example", false),
            ("file://", false),
            ("chrome-extension://localhost", false),
            ("http://", false),
            ("localhost", false),
        ] {
            assert_eq!(passes(Some("localhost"), Some(origin), &list, &list), allowed, "{origin}");
        }
    }

    #[test]
    fn allowed_hosts_and_origins_must_match_completely() {
        let hosts = AllowList::loopback().and("Mcp.Example.com");
        let origins = AllowList::loopback().and("https://app.example.com");
        assert!(passes(Some("mcp.example.com:443"), Some("https://APP.example.com"), &hosts, &origins));
        assert!(!passes(Some("x.mcp.example.com"), None, &hosts, &origins));
        assert!(!passes(Some("mcp.example.com"), Some("http://app.example.com"), &hosts, &origins));
        assert!(!passes(Some("mcp.example.com"), Some("https://app.example.com.evil"), &hosts, &origins));
    }

    #[test]
    fn allow_list_accepts_only_values_that_clients_can_send() {
        for (text, is_host, is_origin) in [
            ("mcp.example.com", true, false),
            ("mcp.example.com:8443", true, false),
            ("[2001:db8::1]:80", true, false),
            ("mcp.example.com/", false, false),
            ("https://app.example.com", false, true),
            ("http://localhost:3000", false, true),
            ("chrome-extension://abcdefgh", false, true),
            ("https://app.example.com/", false, false),
            ("https://app.example.com:443", false, false),
            ("http://app.example.com:443", false, true),
            ("https://user@app.example.com", false, false),
            ("https://*.example.com", false, false),
            ("*", false, false),
            ("", false, false),
            ("null", true, false),
            ("://a", false, false),
        ] {
            assert_eq!(
                (AllowList::is_host(text), AllowList::is_origin(text)),
                (is_host, is_origin),
                "{text}"
            );
        }
    }

    #[test]
    fn repeated_host_or_origin_headers_are_refused() {
        let list = AllowList::loopback();
        let mut headers = HeaderMap::new();
        headers.append(HOST, "localhost".parse().unwrap());
        headers.append(HOST, "evil.example".parse().unwrap());
        assert!(check(&McpHeaders::from_map(&headers), None, &list, &list).is_err());
        let other: Authority = "evil.example".parse().unwrap();
        let mut one = HeaderMap::new();
        one.append(HOST, "localhost".parse().unwrap());
        assert!(check(&McpHeaders::from_map(&one), Some(&other), &list, &list).is_err());
    }
}
