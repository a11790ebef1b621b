use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What a user needs to connect a client.
#[derive(Debug)]
pub(super) struct Banner<'a> {
    pub(super) address: SocketAddr,
    pub(super) path: &'a str,
    /// The paths of HTTP+SSE and of WebSockets, where they are served.
    pub(super) channels: Option<(&'a str, &'a str)>,
    pub(super) builtin: &'a str,
    /// What callers send to be let in.
    pub(super) credential: BannerCredential,
    /// The URL by which clients have to reach the endpoint, if it is another one.
    pub(super) public_url: Option<&'a str>,
    /// Whether TLS is enabled.
    pub(super) tls: bool,
}

/// What a client sends to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BannerCredential {
    None,
    StaticToken,
    /// An access token, which it gets by itself.
    AccessToken,
}

impl Banner<'_> {
    /// Returns the URL by which a client on this machine reaches the endpoint.
    pub(super) fn url(&self) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{}", SocketAddr::new(ip, self.address.port()), self.path)
    }
}

impl fmt::Display for Banner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url();
        let (option, member) = match self.credential {
            BannerCredential::StaticToken => (
                " \\\n    --header \"Authorization: Bearer TOKEN\"",
                ",\n    \"headers\": { \"Authorization\": \"Bearer TOKEN\" }",
            ),
            BannerCredential::None | BannerCredential::AccessToken => ("", ""),
        };
        writeln!(f, "trunkline {} listening on {url}", env!("CARGO_PKG_VERSION"))?;
        if let Some((sse, websocket)) = self.channels {
            writeln!(f, "and on {sse} (HTTP+SSE) and {websocket} (WebSocket)")?;
        }
        writeln!(f, "serving {}; press Ctrl-C to stop\n", self.builtin)?;
        let url = self.public_url.unwrap_or(&url);
        writeln!(f, "Claude Code:\n  claude mcp add --transport http trunkline {url}{option}\n")?;
        writeln!(f, "Other clients, in mcp.json:")?;
        writeln!(
            f,
            "  {{ \"mcpServers\": {{ \"trunkline\": {{\n    \"type\": \"http\",\n    \"url\": \"{url}\"{member}\n  }} }} }}\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::BannerCredential::{AccessToken, None as NoCredential, StaticToken};
    use super::*;

    fn banner(address: &str, credential: BannerCredential, public_url: Option<&str>) -> String {
        let channels = Some(("/sse", "/ws"));
        let address = address.parse().unwrap();
        let tls = credential != NoCredential;
        Banner { address, path: "/mcp", channels, builtin: "echo, time", credential, public_url, tls }
            .to_string()
    }

    #[test]
    fn banner_fits_80_columns() {
        for address in ["127.0.0.1:7411", "255.255.255.255:65535", "[::1]:7411"] {
            for credential in [NoCredential, StaticToken, AccessToken] {
                for line in banner(address, credential, None).lines() {
                    assert!(line.len() <= 80, "{line}");
                }
            }
        }
    }

    #[test]
    fn client_snippet_is_json_with_the_url_of_clients() {
        let public = "https://hub.example.com/mcp";
        for (credential, public_url, url) in [
            (NoCredential, None, "http://127.0.0.1:7411/mcp"),
            (StaticToken, None, "https://127.0.0.1:7411/mcp"),
            (StaticToken, Some(public), public),
            (AccessToken, Some(public), public),
        ] {
            let text = banner("0.0.0.0:7411", credential, public_url);
            let snippet = text.split_once("mcp.json:\n").unwrap().1;
            let json: serde_json::Value = serde_json::from_str(snippet).unwrap();
            let server = &json["mcpServers"]["trunkline"];
            assert_eq!(server["url"], url);
            assert!(text.contains(&format!("claude mcp add --transport http trunkline {url}")), "{text}");
            // A client that logs in by itself has no token to write into a file.
            assert_eq!(server["headers"]["Authorization"] == "Bearer TOKEN", credential == StaticToken);
        }
    }
}
