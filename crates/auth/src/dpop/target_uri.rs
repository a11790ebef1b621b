use http::Uri;
use http::uri::Scheme;

/// The URI of a request as a proof has it in `htu`: without query and fragment, and normalized.
///
/// Scheme and host are in lower case, a default port is left out, and an empty path is `/`
/// ([RFC 9449 §4.3](https://www.rfc-editor.org/rfc/rfc9449#section-4.3) recommends this before comparison). Paths are
/// compared as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetUri(String);

impl TargetUri {
    /// Normalizes the URI of a request; `None` if it is not an absolute `http` or `https` URI. A server uses its public
    /// URI, not the one that a proxy has rewritten.
    pub fn new(uri: &Uri) -> Option<Self> {
        let scheme = uri.scheme().filter(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme))?;
        let authority = uri.authority()?;
        let mut text = format!("{}://{}", scheme.as_str(), authority.host().to_ascii_lowercase());
        let default_port = if *scheme == Scheme::HTTPS { 443 } else { 80 };
        if let Some(port) = authority.port_u16().filter(|port| *port != default_port) {
            text.push(':');
            text.push_str(&port.to_string());
        }
        text.push_str(if uri.path().is_empty() { "/" } else { uri.path() });
        Some(Self(text))
    }

    /// Normalizes the `htu` of a proof. Query and fragment are ignored; user information is refused.
    pub(super) fn parse(htu: &str) -> Option<Self> {
        let end = htu.find(['?', '#']).unwrap_or(htu.len());
        let uri: Uri = htu.get(..end)?.parse().ok()?;
        if uri.authority()?.as_str().contains('@') {
            return None;
        }
        Self::new(&uri)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_uris_are_normalized() {
        for (text, expected) in [
            ("https://hub.example/mcp", Some("https://hub.example/mcp")),
            ("https://hub.example/mcp?a=1", Some("https://hub.example/mcp")),
            ("https://hub.example/mcp#f", Some("https://hub.example/mcp")),
            ("HTTPS://Hub.Example:443/Mcp", Some("https://hub.example/Mcp")),
            ("https://hub.example", Some("https://hub.example/")),
            ("https://hub.example?a", Some("https://hub.example/")),
            ("http://hub.example:80/", Some("http://hub.example/")),
            ("http://hub.example:443/", Some("http://hub.example:443/")),
            ("http://[::1]:8080/mcp", Some("http://[::1]:8080/mcp")),
            ("https://hub.example/mcp/", Some("https://hub.example/mcp/")),
            ("https://user@hub.example/mcp", None),
            ("/mcp", None),
            ("hub.example", None),
            ("ftp://hub.example/mcp", None),
            ("https://", None),
            ("", None),
            ("https://hub.example/m cp", None),
        ] {
            let normalized = TargetUri::parse(text);
            assert_eq!(normalized.as_ref().map(TargetUri::as_str), expected, "{text}");
        }
    }
}
