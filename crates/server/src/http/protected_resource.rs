use std::fmt;

use http::{StatusCode, Uri};
use serde_json::{Map, Value};

use super::auth::AuthChallenge;

/// The document that describes a protected resource.
const DOCUMENT: &str = "/.well-known/oauth-protected-resource";

/// The description of the endpoint as an OAuth protected resource
/// ([RFC 9728](https://www.rfc-editor.org/rfc/rfc9728)).
///
/// The endpoint serves it without authentication at `/.well-known/oauth-protected-resource`, there followed by its path, and
/// names it in every challenge.
///
/// ```
/// use trunkline_server::http::ProtectedResource;
///
/// let resource = ProtectedResource::new("https://hub.example/mcp")?
///     .authorization_server("https://login.example")
///     .scopes(["mcp:use"]);
/// assert_eq!(resource.metadata_url(), "https://hub.example/.well-known/oauth-protected-resource/mcp");
/// # Ok::<(), trunkline_server::http::ProtectedResourceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProtectedResource {
    resource: String,
    metadata_url: String,
    /// The path of the resource, as it follows the path of the document.
    path: String,
    authorization_servers: Vec<String>,
    scopes: Vec<String>,
    members: Map<String, Value>,
}

/// Why a URL cannot be that of a protected resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{url}` is not the URL of an endpoint: it must begin with https:// or http:// and have no fragment or query"
)]
pub struct ProtectedResourceError {
    url: String,
}

impl ProtectedResource {
    /// Describes the endpoint at a public URL: the one that clients connect to, exactly as they write it. Clients
    /// discard the document of another ([RFC 9728 §3.3](https://www.rfc-editor.org/rfc/rfc9728#section-3.3)).
    ///
    /// # Errors
    /// The text is no such URL.
    pub fn new(resource: impl Into<String>) -> Result<Self, ProtectedResourceError> {
        let resource = resource.into();
        match split_url(&resource) {
            Some((origin, path)) => {
                let (metadata_url, path) = (format!("{origin}{DOCUMENT}{path}"), path.to_owned());
                Ok(Self {
                    resource,
                    metadata_url,
                    path,
                    authorization_servers: Vec::new(),
                    scopes: Vec::new(),
                    members: Map::new(),
                })
            }
            None => Err(ProtectedResourceError { url: resource }),
        }
    }

    /// Adds an authorization server by its issuer identifier.
    #[must_use]
    pub fn authorization_server(mut self, issuer: impl Into<String>) -> Self {
        self.authorization_servers.push(issuer.into());
        self
    }

    /// Sets the scopes that a client should request first: `scopes_supported` of the document, and `scope` of the
    /// challenge to a request without a valid token.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets another member of the document, such as `resource_name` or `dpop_signing_alg_values_supported`.
    #[must_use]
    pub fn member(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.members.insert(name.into(), value.into());
        self
    }

    /// Returns the URL of the resource, byte for byte as it was given.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// Returns the URL of the document, for the parameter `resource_metadata` of challenges.
    pub fn metadata_url(&self) -> &str {
        &self.metadata_url
    }

    /// Returns the document.
    pub fn document(&self) -> Value {
        let mut members = Map::new();
        members.insert("resource".to_owned(), self.resource.clone().into());
        for (name, values) in
            [("authorization_servers", &self.authorization_servers), ("scopes_supported", &self.scopes)]
        {
            if !values.is_empty() {
                members.insert(name.to_owned(), values.clone().into());
            }
        }
        members.insert("bearer_methods_supported".to_owned(), vec!["header"].into());
        members.extend(self.members.clone());
        members.into()
    }

    /// Adds to a challenge where a client finds the document, and to one for a new token also its scopes.
    pub(super) fn complete(&self, challenge: &mut AuthChallenge, status: StatusCode) {
        if status == StatusCode::UNAUTHORIZED && !self.scopes.is_empty() {
            challenge.add_default("scope", &self.scopes.join(" "));
        }
        challenge.add_default("resource_metadata", &self.metadata_url);
    }

    /// Returns the paths of the document: for the public path, for the path of the endpoint, which a proxy may have
    /// changed, and without one.
    #[cfg(feature = "axum")]
    pub(super) fn paths(&self, endpoint: &str) -> [String; 3] {
        [self.path.as_str(), endpoint, ""].map(|path| format!("{DOCUMENT}{path}"))
    }

    /// Reports whether the document is at a path.
    pub(super) fn is_at(&self, path: &str, endpoint: &str) -> bool {
        let rest = path.strip_prefix(DOCUMENT);
        rest.is_some_and(|rest| ["", &self.path, endpoint].contains(&rest))
    }
}

impl fmt::Display for ProtectedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)
    }
}

/// Splits a URL into its origin and its path, which is empty for the root
/// ([RFC 9728 §3.1](https://www.rfc-editor.org/rfc/rfc9728#section-3.1)).
fn split_url(url: &str) -> Option<(&str, &str)> {
    let uri: Uri = url.parse().ok()?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || url.contains(['#', '?']) {
        return None;
    }
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'))?;
    let path = uri.path();
    let origin = url.get(..url.find("://")? + "://".len() + authority.as_str().len())?;
    let rest = url.get(origin.len()..)?;
    // What is served at a path is compared to the path of requests, byte for byte.
    (rest.is_empty() || rest == path).then_some((origin, if rest == "/" { "" } else { rest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_url_has_the_document_between_host_and_path() {
        for (url, expected) in [
            ("https://h.example/mcp", Some("https://h.example/.well-known/oauth-protected-resource/mcp")),
            ("https://h.example", Some("https://h.example/.well-known/oauth-protected-resource")),
            ("https://h.example/", Some("https://h.example/.well-known/oauth-protected-resource")),
            ("http://h:81/a/b/", Some("http://h:81/.well-known/oauth-protected-resource/a/b/")),
            ("HTTPS://H.example/mcp", Some("HTTPS://H.example/.well-known/oauth-protected-resource/mcp")),
            ("https://user@h.example/mcp", None),
            ("https://h.example/mcp?a=b", None),
            ("https://h.example/mcp#a", None),
            ("ftp://h.example/mcp", None),
            ("/mcp", None),
            ("h.example", None),
            ("", None),
        ] {
            let found = ProtectedResource::new(url);
            assert_eq!(found.as_ref().map(ProtectedResource::metadata_url).ok(), expected, "{url}");
        }
    }

    #[test]
    fn metadata_document_has_the_resource_byte_for_byte() {
        let resource = ProtectedResource::new("HTTPS://H.example/mcp")
            .unwrap()
            .authorization_server("https://login.example")
            .scopes(["mcp:use"])
            .member("resource_name", "Hub");
        assert_eq!(
            resource.document(),
            serde_json::json!({
                "resource": "HTTPS://H.example/mcp",
                "authorization_servers": ["https://login.example"],
                "scopes_supported": ["mcp:use"],
                "bearer_methods_supported": ["header"],
                "resource_name": "Hub",
            })
        );
    }
}
