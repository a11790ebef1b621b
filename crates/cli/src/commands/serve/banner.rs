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
    /// Whether callers need a token.
    pub(super) token: bool,
    /// Whether TLS is enabled.
    pub(super) tls: bool,
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
        let (option, member) = if self.token {
            (
                " \\\n    --header \"Authorization: Bearer TOKEN\"",
                ",\n    \"headers\": { \"Authorization\": \"Bearer TOKEN\" }",
            )
        } else {
            ("", "")
        };
        writeln!(f, "trunkline {} listening on {url}", env!("CARGO_PKG_VERSION"))?;
        if let Some((sse, websocket)) = self.channels {
            writeln!(f, "and on {sse} (HTTP+SSE) and {websocket} (WebSocket)")?;
        }
        writeln!(f, "serving {}; press Ctrl-C to stop\n", self.builtin)?;
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
    use super::*;

    fn banner(address: &str, token: bool) -> String {
        let channels = Some(("/sse", "/ws"));
        let address = address.parse().unwrap();
        let tls = token;
        Banner { address, path: "/mcp", channels, builtin: "echo, time", token, tls }.to_string()
    }

    #[test]
    fn banner_fits_80_columns() {
        for address in ["127.0.0.1:7411", "255.255.255.255:65535", "[::1]:7411"] {
            for token in [false, true] {
                for line in banner(address, token).lines() {
                    assert!(line.len() <= 80, "{line}");
                }
            }
        }
    }

    #[test]
    fn client_snippet_is_json_with_the_url() {
        for token in [false, true] {
            let text = banner("0.0.0.0:7411", token);
            let snippet = text.split_once("mcp.json:\n").unwrap().1;
            let json: serde_json::Value = serde_json::from_str(snippet).unwrap();
            let server = &json["mcpServers"]["trunkline"];
            assert_eq!(server["url"], format!("http{}://127.0.0.1:7411/mcp", if token { "s" } else { "" }));
            assert_eq!(server["headers"]["Authorization"] == "Bearer TOKEN", token);
        }
    }
}
