use http::HeaderMap;
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use trunkline_protocol::Refusal;

/// The names that a `Host` or `Origin` header may have.
///
/// A page that a browser loaded from elsewhere can reach a server on this machine; these two headers, which a page cannot
/// forge, tell such a request apart. Names are compared whole and without regard to case; a trailing dot is not ignored,
/// since no honest client sends one.
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

    /// Allows everything.
    pub const fn any() -> Self {
        Self { any: true, loopback: false, names: Vec::new() }
    }

    /// Allows a name too: a host such as `example.com` or `example.com:8443`, or an origin such as `https://example.com`.
    #[must_use]
    pub fn and(mut self, name: impl Into<String>) -> Self {
        self.names.push(name.into().to_ascii_lowercase());
        self
    }

    fn allows_host(&self, host: &str) -> bool {
        if self.any {
            return true;
        }
        let Some(authority) = bare_authority(host) else { return false };
        let name = authority.host().to_ascii_lowercase();
        let whole = host.to_ascii_lowercase();
        (self.loopback && is_loopback(&name)) || self.names.iter().any(|known| *known == name || *known == whole)
    }

    /// Reports whether pages of an origin may call.
    pub(super) fn allows_origin(&self, origin: &str) -> bool {
        if self.any {
            return true;
        }
        let origin = origin.to_ascii_lowercase();
        if self.names.contains(&origin) {
            return true;
        }
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let Some(authority) = authority.and_then(bare_authority) else { return false };
        self.loopback && is_loopback(authority.host())
    }
}

/// Reads an authority that names a host and perhaps a port, and nothing else.
fn bare_authority(text: &str) -> Option<Authority> {
    let authority: Authority = text.parse().ok()?;
    let plain = !text.contains('@') && !authority.host().is_empty();
    let port_ok = authority.port().is_none_or(|port| port.as_u16() != 0) && !text.ends_with(':');
    (plain && port_ok).then_some(authority)
}

fn is_loopback(name: &str) -> bool {
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

/// Checks both headers of a request.
///
/// # Errors
/// [`Refusal::FORBIDDEN_ORIGIN`] if either is not allowed, is repeated, or is not text.
pub(super) fn check(
    headers: &HeaderMap,
    authority: Option<&Authority>,
    hosts: &AllowList,
    origins: &AllowList,
) -> Result<(), Refusal> {
    let host_ok = match single(headers, &HOST)? {
        Some(host) => hosts.allows_host(host) && authority.is_none_or(|named| named.as_str() == host),
        // HTTP/2 names the host in the request line instead.
        None => authority.map_or(hosts.any, |named| hosts.allows_host(named.as_str())),
    };
    let origin_ok = single(headers, &ORIGIN)?.is_none_or(|origin| origins.allows_origin(origin));
    if host_ok && origin_ok { Ok(()) } else { Err(Refusal::FORBIDDEN_ORIGIN) }
}

fn single<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Refusal::FORBIDDEN_ORIGIN),
        (Some(_), Some(_)) => Err(Refusal::FORBIDDEN_ORIGIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(host: Option<&str>, origin: Option<&str>, hosts: &AllowList, origins: &AllowList) -> bool {
        let mut headers = HeaderMap::new();
        host.into_iter().for_each(|host| drop(headers.append(HOST, host.parse().unwrap())));
        origin.into_iter().for_each(|origin| drop(headers.append(ORIGIN, origin.parse().unwrap())));
        check(&headers, None, hosts, origins).is_ok()
    }

    #[test]
    fn hosts_are_loopback_names_by_default() {
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
    fn origins_are_loopback_ones_by_default() {
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
    fn named_hosts_and_origins_are_compared_whole() {
        let hosts = AllowList::loopback().and("Mcp.Example.com");
        let origins = AllowList::loopback().and("https://app.example.com");
        assert!(passes(Some("mcp.example.com:443"), Some("https://APP.example.com"), &hosts, &origins));
        assert!(!passes(Some("x.mcp.example.com"), None, &hosts, &origins));
        assert!(!passes(Some("mcp.example.com"), Some("http://app.example.com"), &hosts, &origins));
        assert!(!passes(Some("mcp.example.com"), Some("https://app.example.com.evil"), &hosts, &origins));
    }

    #[test]
    fn repeated_headers_are_refused() {
        let list = AllowList::loopback();
        let mut headers = HeaderMap::new();
        headers.append(HOST, "localhost".parse().unwrap());
        headers.append(HOST, "evil.example".parse().unwrap());
        assert!(check(&headers, None, &list, &list).is_err());
        let other: Authority = "evil.example".parse().unwrap();
        let mut one = HeaderMap::new();
        one.append(HOST, "localhost".parse().unwrap());
        assert!(check(&one, Some(&other), &list, &list).is_err());
    }
}
