use http::Uri;
use trunkline_auth::dpop::TargetUri;

/// The public URIs of requests, against which their proofs are checked.
///
/// A proxy may have changed host and path, so they follow from the public URL of the endpoint.
#[derive(Clone, Debug)]
pub(super) struct PublicUris {
    origin: String,
    /// What a proxy has in front of the paths of this server.
    prefix: String,
    endpoint_path: String,
    endpoint: Option<TargetUri>,
}

impl PublicUris {
    /// Takes the public URL of the endpoint, and its path behind any proxy.
    pub(super) fn new(resource: &str, endpoint_path: Option<&str>) -> Self {
        let uri: Uri = resource.parse().unwrap_or_default();
        let scheme = uri.scheme_str().unwrap_or("https");
        let origin = format!("{scheme}://{}", uri.authority().map_or("", |authority| authority.as_str()));
        let endpoint_path = endpoint_path.unwrap_or_else(|| uri.path()).to_owned();
        let prefix = uri.path().strip_suffix(&endpoint_path).unwrap_or_default().to_owned();
        Self { origin, prefix, endpoint_path, endpoint: TargetUri::new(&uri) }
    }

    /// Returns the public URI of a request to a path of this server.
    pub(super) fn of_path(&self, path: &str) -> Option<TargetUri> {
        if path == self.endpoint_path {
            return self.endpoint.clone();
        }
        let uri: Uri = format!("{}{}{path}", self.origin, self.prefix).parse().ok()?;
        TargetUri::new(&uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_uris_follow_from_the_public_url() {
        for (resource, endpoint, path, expected) in [
            ("https://hub.example/mcp", None, "/mcp", "https://hub.example/mcp"),
            ("https://hub.example/mcp", None, "/sse", "https://hub.example/sse"),
            ("https://hub.example/team/mcp", Some("/mcp"), "/mcp", "https://hub.example/team/mcp"),
            ("https://hub.example/team/mcp", Some("/mcp"), "/ws", "https://hub.example/team/ws"),
            ("https://hub.example/api", Some("/mcp"), "/mcp", "https://hub.example/api"),
            ("https://hub.example/api", Some("/mcp"), "/ws", "https://hub.example/ws"),
            ("https://HUB.example:443", Some("/"), "/", "https://hub.example/"),
        ] {
            let found = PublicUris::new(resource, endpoint).of_path(path);
            assert_eq!(found.as_ref().map(TargetUri::as_str), Some(expected), "{resource} {path}");
        }
    }
}
