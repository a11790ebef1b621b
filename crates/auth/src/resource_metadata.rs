//! Protected resource metadata ([RFC 9728](https://www.rfc-editor.org/rfc/rfc9728)): which authorization servers issue
//! tokens for an MCP server.

use trunkline_http1::Url;

use crate::json_document::{DocumentError, JsonDocument};
use crate::scopes::ScopeSet;

/// The metadata of a protected resource, as far as a client uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// The identifier of the resource, to be sent byte for byte as the parameter `resource` (RFC 8707).
    pub resource: String,
    /// The issuers of its authorization servers, in order of preference.
    pub authorization_servers: Vec<String>,
    /// The scopes that requests to it use.
    pub scopes_supported: Option<ScopeSet>,
    /// Its name for people, which is text of the peer.
    pub resource_name: Option<String>,
    /// The algorithms that it accepts for DPoP proofs.
    pub dpop_signing_algorithms: Vec<String>,
    /// Whether it accepts DPoP-bound tokens only.
    pub is_dpop_required: bool,
}

impl ResourceMetadata {
    /// Parses a document. Members of an unexpected type are ignored.
    ///
    /// # Errors
    /// The body is not a JSON object, is too large, or has no `resource`.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let document = JsonDocument::parse(body)?;
        let scopes = document.texts("scopes_supported");
        Ok(Self {
            resource: document.required("resource")?,
            authorization_servers: document.texts("authorization_servers").unwrap_or_default(),
            scopes_supported: scopes.map(|scopes| scopes.iter().map(String::as_str).collect()),
            resource_name: document.text("resource_name"),
            dpop_signing_algorithms: document.texts("dpop_signing_alg_values_supported").unwrap_or_default(),
            is_dpop_required: document.is_true("dpop_bound_access_tokens_required"),
        })
    }

    /// Reports whether the resource is the one at a URL: equal to it, or of the same origin with a path that contains
    /// it at a segment boundary.
    ///
    /// RFC 9728 §3.3 requires equality for a document that was found by its well-known path. Servers in the field name
    /// their origin as the resource of all endpoints, which grants no other origin anything.
    pub fn covers(&self, dialled: &str) -> bool {
        if self.resource == dialled {
            return true;
        }
        let (Ok(resource), Ok(dialled)) = (self.resource.parse::<Url>(), dialled.parse::<Url>()) else {
            return false;
        };
        if !resource.is_same_origin(&dialled) {
            return false;
        }
        if resource.path_and_query().contains('?') {
            return resource == dialled;
        }
        let prefix = resource.path_and_query().trim_end_matches('/');
        let path = dialled.path_and_query().split('?').next().unwrap_or_default();
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_metadata_is_parsed_tolerantly() {
        let body = br#"{"resource":"https://h/mcp","authorization_servers":["https://a",7],
            "scopes_supported":["x","y z"],"resource_name":3,"dpop_bound_access_tokens_required":true,
            "dpop_signing_alg_values_supported":["ES256"],"unknown":{}}"#;
        let metadata = ResourceMetadata::parse(body).unwrap();
        assert_eq!(metadata.resource, "https://h/mcp");
        assert_eq!(metadata.authorization_servers, ["https://a"]);
        assert_eq!(metadata.scopes_supported.unwrap().to_string(), "x");
        assert_eq!((metadata.resource_name, metadata.is_dpop_required), (None, true));
        assert_eq!(metadata.dpop_signing_algorithms, ["ES256"]);
        let missing = ResourceMetadata::parse(br#"{"authorization_servers":[]}"#);
        assert_eq!(missing.unwrap_err(), DocumentError::Missing("resource"));
    }

    #[test]
    fn resource_covers_only_urls_at_or_below_it() {
        let table = [
            ("https://h/mcp", "https://h/mcp", true),
            ("https://h", "https://h/mcp", true),
            ("https://h/", "https://h/mcp?x=y", true),
            ("HTTPS://H:443/mcp", "https://h/mcp", true),
            ("https://h/mcp/", "https://h/mcp", true),
            ("https://h/mcp", "https://h/mcp/v1", true),
            ("https://h/mcp", "https://h/mcp2", false),
            ("https://h/mcp/v1", "https://h/mcp", false),
            ("https://h/mcp?a=b", "https://h/mcp", false),
            ("https://h/mcp?a=b", "https://h/mcp?a=b", true),
            ("http://h/mcp", "https://h/mcp", false),
            ("https://h:444/mcp", "https://h/mcp", false),
            ("https://evil.example/mcp", "https://h/mcp", false),
            ("https://h.evil.example/", "https://h/", false),
            ("urn:x", "https://h/", false),
        ];
        for (resource, dialled, expected) in table {
            let body = format!(r#"{{"resource":"{resource}"}}"#);
            let metadata = ResourceMetadata::parse(body.as_bytes()).unwrap();
            assert_eq!(metadata.covers(dialled), expected, "{resource} {dialled}");
        }
    }
}
