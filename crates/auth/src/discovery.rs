//! The URLs at which metadata are looked for, in order.
//!
//! MCP, Protected Resource Metadata Discovery Requirements and Authorization Server Metadata Discovery.

use trunkline_http1::Url;

/// Returns the URLs of protected resource metadata: that of the challenge, that with the path of the MCP endpoint, and
/// that of the origin.
pub fn resource_metadata_urls(challenged: Option<&str>, mcp_server: &Url) -> Vec<String> {
    const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
    let origin = mcp_server.origin();
    let path = path_of(mcp_server);
    let mut urls = Vec::new();
    push_new(&mut urls, challenged.map(str::to_owned));
    push_new(&mut urls, (!path.is_empty()).then(|| format!("{origin}{WELL_KNOWN}{path}")));
    push_new(&mut urls, Some(format!("{origin}{WELL_KNOWN}")));
    urls
}

/// Returns the URLs of the metadata of an issuer: RFC 8414 with the path inserted, OpenID Connect with the path
/// inserted, and OpenID Connect with the path in front.
pub fn server_metadata_urls(issuer: &Url) -> Vec<String> {
    let origin = issuer.origin();
    let path = path_of(issuer);
    let mut urls = Vec::new();
    push_new(&mut urls, Some(format!("{origin}/.well-known/oauth-authorization-server{path}")));
    push_new(&mut urls, Some(format!("{origin}/.well-known/openid-configuration{path}")));
    push_new(&mut urls, Some(format!("{origin}{path}/.well-known/openid-configuration")));
    urls
}

/// Returns the URL of the metadata of an MCP server that is its own authorization server, as in revision 2025-03-26:
/// the path of the MCP endpoint is dropped.
pub fn origin_metadata_url(mcp_server: &Url) -> String {
    format!("{}/.well-known/oauth-authorization-server", mcp_server.origin())
}

/// Returns the path without its last slash (RFC 8414 §3.1), or nothing for the root.
fn path_of(url: &Url) -> &str {
    url.path_and_query().split('?').next().unwrap_or_default().trim_end_matches('/')
}

fn push_new(urls: &mut Vec<String>, url: Option<String>) {
    if let Some(url) = url
        && !urls.contains(&url)
    {
        urls.push(url);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_metadata_are_looked_for_in_the_order_of_the_specification() {
        let table: [(Option<&str>, &str, &[&str]); 4] = [
            (
                None,
                "https://h/mcp",
                &[
                    "https://h/.well-known/oauth-protected-resource/mcp",
                    "https://h/.well-known/oauth-protected-resource",
                ],
            ),
            (None, "https://h", &["https://h/.well-known/oauth-protected-resource"]),
            (
                Some("https://x/custom"),
                "http://localhost:3/a/b/?q",
                &[
                    "https://x/custom",
                    "http://localhost:3/.well-known/oauth-protected-resource/a/b",
                    "http://localhost:3/.well-known/oauth-protected-resource",
                ],
            ),
            (
                Some("https://h/.well-known/oauth-protected-resource"),
                "https://h/mcp",
                &[
                    "https://h/.well-known/oauth-protected-resource",
                    "https://h/.well-known/oauth-protected-resource/mcp",
                ],
            ),
        ];
        for (challenged, dialled, expected) in table {
            assert_eq!(resource_metadata_urls(challenged, &dialled.parse().unwrap()), expected, "{dialled}");
        }
    }

    #[test]
    fn server_metadata_are_looked_for_in_the_order_of_the_specification() {
        let with_path: &[&str] = &[
            "https://a/.well-known/oauth-authorization-server/t1",
            "https://a/.well-known/openid-configuration/t1",
            "https://a/t1/.well-known/openid-configuration",
        ];
        let without: &[&str] = &[
            "https://a/.well-known/oauth-authorization-server",
            "https://a/.well-known/openid-configuration",
        ];
        let table = [("https://a/t1", with_path), ("https://a/t1/", with_path), ("https://a", without)];
        for (issuer, expected) in table {
            assert_eq!(server_metadata_urls(&issuer.parse().unwrap()), expected, "{issuer}");
        }
        let dialled = "https://h/v1/mcp".parse().unwrap();
        assert_eq!(origin_metadata_url(&dialled), "https://h/.well-known/oauth-authorization-server");
    }
}
