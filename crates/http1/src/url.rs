use std::fmt;
use std::str::FromStr;

use http::uri::{Authority, PathAndQuery};

/// The URL of a server over HTTP or WebSocket.
///
/// It is validated when parsed: the scheme is one of four, there is a host, and there is no user name or password. A
/// fragment is dropped, since it is not sent to a server. A query may hold a secret, so `Display` redacts it;
/// [`Url::to_full_string`] has it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Url {
    scheme: UrlScheme,
    /// In lower case, and without the brackets of an IPv6 address.
    host: String,
    port: u16,
    path: PathAndQuery,
}

/// The scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlScheme {
    /// HTTP.
    Http,
    /// HTTP over TLS.
    Https,
    /// WebSocket.
    Ws,
    /// WebSocket over TLS.
    Wss,
}

impl UrlScheme {
    const ALL: [Self; 4] = [Self::Http, Self::Https, Self::Ws, Self::Wss];

    /// Returns its name, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Ws => "ws",
            Self::Wss => "wss",
        }
    }

    /// Reports whether the connection uses TLS.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::Https | Self::Wss)
    }

    /// Reports whether the scheme is one of WebSocket.
    pub fn is_websocket(self) -> bool {
        matches!(self, Self::Ws | Self::Wss)
    }

    fn default_port(self) -> u16 {
        if self.is_encrypted() { 443 } else { 80 }
    }
}

/// The reason why a text is not a usable URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// The scheme is none of the four.
    #[error("the address has to begin with http://, https://, ws:// or wss://")]
    Scheme,
    /// The host or port is missing or malformed.
    #[error("the address has no usable host; a name beyond ASCII has to be in its `xn--` form")]
    Host,
    /// The URL has a user name or password.
    #[error("the address holds credentials, which would end up in logs; send them as a header instead")]
    Credentials,
    /// The path or query has a character that is not allowed there.
    #[error("the path of the address has a character that has to be percent-encoded")]
    Path,
}

impl Url {
    /// Returns the scheme.
    pub fn scheme(&self) -> UrlScheme {
        self.scheme
    }

    /// Returns the host in lower case, an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port, or the default of the scheme.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the path and the query, as in a request line.
    pub fn path_and_query(&self) -> &str {
        self.path.as_str()
    }

    /// Returns the host, and the port unless it is the scheme's default, as in a `Host` header.
    pub fn authority(&self) -> String {
        let bracketed = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.default_port() { bracketed } else { format!("{bracketed}:{}", self.port) }
    }

    /// Returns the origin: scheme, host and port. Credentials belong to it.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme.as_str(), self.authority())
    }

    /// Returns the whole URL, including the query.
    pub fn to_full_string(&self) -> String {
        format!("{}{}", self.origin(), self.path)
    }

    /// Reports whether two URLs have the same origin, so that credentials for one may be sent to the other.
    pub fn is_same_origin(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// Reports whether the host is a loopback name or address, without name resolution.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<std::net::IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => self.host == "localhost" || self.host.ends_with(".localhost"),
        }
    }

    /// Resolves a reference of the server relative to this URL.
    ///
    /// # Errors
    /// The reference is not a usable URL.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let reference = reference.trim();
        if has_scheme(reference) {
            return reference.parse();
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return format!("{}://{rest}", self.scheme.as_str()).parse();
        }
        let path = if reference.starts_with('/') {
            reference.to_owned()
        } else if reference.starts_with('?') || reference.is_empty() {
            format!("{}{reference}", self.path.path())
        } else {
            let folder = self.path.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{reference}")
        };
        Ok(Self { path: read_path(&path)?, ..self.clone() })
    }
}

/// Reports whether a reference has a scheme, known or not.
fn has_scheme(reference: &str) -> bool {
    let end = reference.find([':', '/', '?', '#']);
    let is_scheme = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    end.is_some_and(|end| {
        let (name, rest) = reference.split_at(end);
        rest.starts_with(':') && is_scheme(name)
    })
}

/// Parses a path with its query, and removes dot segments (RFC 3986 §5.2.4).
fn read_path(text: &str) -> Result<PathAndQuery, UrlError> {
    let text = text.split('#').next().unwrap_or_default();
    let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    // The `http` crate accepts non-ASCII bytes, which no request line may have.
    let whole = format!("/{}{query}", kept.join("/"));
    if !whole.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(UrlError::Path);
    }
    PathAndQuery::try_from(whole).map_err(|_| UrlError::Path)
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        let (scheme, rest) = UrlScheme::ALL
            .into_iter()
            .find_map(|scheme| {
                let (name, rest) = text.split_once("://")?;
                name.eq_ignore_ascii_case(scheme.as_str()).then_some((scheme, rest))
            })
            .ok_or(UrlError::Scheme)?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(UrlError::Credentials);
        }
        let authority: Authority = authority.parse().map_err(|_| UrlError::Host)?;
        let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
        let is_address = host.parse::<std::net::Ipv6Addr>().is_ok();
        if host.is_empty() || (host.contains(':') && !is_address) {
            return Err(UrlError::Host);
        }
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            // `host:` and `host:99999` are read as a host without a port.
            None if authority.as_str().len() > authority.host().len() => return Err(UrlError::Host),
            None => scheme.default_port(),
        };
        let path = if path.starts_with('/') { read_path(path)? } else { read_path(&format!("/{path}"))? };
        Ok(Self { scheme, host, port, path })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query = if self.path.query().is_some() { "?…" } else { "" };
        write!(f, "{}{}{query}", self.origin(), self.path.path())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_strictly() {
        let table: &[(&str, Result<&str, UrlError>)] = &[
            ("http://127.0.0.1:8080/mcp", Ok("http://127.0.0.1:8080/mcp")),
            ("HTTPS://Example.COM:443/Mcp?a=b#c", Ok("https://example.com/Mcp?a=b")),
            ("http://example.com", Ok("http://example.com/")),
            ("http://example.com?a=b", Ok("http://example.com/?a=b")),
            ("wss://[::1]:9/ws", Ok("wss://[::1]:9/ws")),
            ("ws://localhost:80", Ok("ws://localhost/")),
            (" http://a/b/../c/./d/.. ", Ok("http://a/c/")),
            ("http://a/../../b", Ok("http://a/b")),
            ("ftp://example.com", Err(UrlError::Scheme)),
            ("example.com", Err(UrlError::Scheme)),
            ("http://", Err(UrlError::Host)),
            ("http://:80/", Err(UrlError::Host)),
            ("http://a:/", Err(UrlError::Host)),
            ("http://a:99999/", Err(UrlError::Host)),
            ("http://a b/", Err(UrlError::Host)),
            ("http://[::1/", Err(UrlError::Host)),
            ("http://bücher.example/", Err(UrlError::Host)),
            ("http://user:password@example.com/", Err(UrlError::Credentials)),
            ("http://a/ä", Err(UrlError::Path)),
            ("http://a/b c", Err(UrlError::Path)),
        ];
        for (text, expected) in table {
            let read = text.parse::<Url>().map(|url| url.to_full_string());
            assert_eq!(read.as_ref().map(String::as_str), expected.as_ref().copied(), "{text}");
        }
    }

    #[test]
    fn url_references_are_resolved_relative_to_their_base() {
        let base: Url = "https://example.com/mcp/sse?token=t".parse().unwrap();
        let table: &[(&str, Result<&str, UrlError>)] = &[
            ("/messages?sessionId=1", Ok("https://example.com/messages?sessionId=1")),
            ("messages", Ok("https://example.com/mcp/messages")),
            ("./messages", Ok("https://example.com/mcp/messages")),
            ("../messages", Ok("https://example.com/messages")),
            ("?sessionId=1", Ok("https://example.com/mcp/sse?sessionId=1")),
            ("//other.example/m", Ok("https://other.example/m")),
            ("http://example.com/m", Ok("http://example.com/m")),
            ("messages?next=http://x", Ok("https://example.com/mcp/messages?next=http://x")),
            ("javascript:alert(1)", Err(UrlError::Scheme)),
            ("/a b", Err(UrlError::Path)),
        ];
        for (reference, expected) in table {
            let read = base.join(reference).map(|url| url.to_full_string());
            assert_eq!(read.as_ref().map(String::as_str), expected.as_ref().copied(), "{reference}");
        }
    }

    #[test]
    fn origin_is_scheme_host_and_port() {
        let base: Url = "https://example.com/mcp".parse().unwrap();
        let table = [
            ("https://EXAMPLE.com:443/other", true),
            ("http://example.com/mcp", false),
            ("wss://example.com/mcp", false),
            ("https://example.com:444/mcp", false),
            ("https://example.com.evil.example/mcp", false),
        ];
        for (other, same) in table {
            assert_eq!(base.is_same_origin(&other.parse().unwrap()), same, "{other}");
        }
    }

    #[test]
    fn loopback_urls_are_detected_by_name_and_address() {
        let table = [
            ("http://localhost/", true),
            ("http://x.localhost/", true),
            ("http://127.8.9.1/", true),
            ("http://[::1]/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://localhost.example/", false),
            ("http://10.0.0.1/", false),
        ];
        for (text, loopback) in table {
            assert_eq!(text.parse::<Url>().unwrap().is_loopback(), loopback, "{text}");
        }
    }

    #[test]
    fn url_display_redacts_the_query() {
        let url: Url = "https://example.com/mcp?key=sentinel".parse().unwrap();
        assert_eq!(format!("{url} {url:?}"), "https://example.com/mcp?… Url(https://example.com/mcp?…)");
    }
}
