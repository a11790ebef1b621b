//! Authorization server metadata ([RFC 8414](https://www.rfc-editor.org/rfc/rfc8414) and OpenID Connect Discovery).

use trunkline_http1::Url;

use crate::endpoint_url::{EndpointError, PlainHttpPolicy, check_endpoint};
use crate::json_document::{DocumentError, JsonDocument};
use crate::scopes::ScopeSet;

/// The reason why the metadata of an authorization server are not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The body is not a metadata document.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The document is of another issuer, which RFC 8414 §3.3 forbids to use.
    #[error("the document is of the issuer `{found}` instead of `{expected}`")]
    IssuerMismatch {
        /// The issuer from which the URL of the document was built.
        expected: String,
        /// The issuer in the document.
        found: String,
    },
    /// A URL in the document is not acceptable.
    #[error("its `{member}` is refused: {cause}")]
    Endpoint {
        /// The member of the document.
        member: &'static str,
        /// What is wrong with it.
        cause: EndpointError,
    },
    /// The server has no PKCE with S256, without which MCP clients refuse to proceed.
    #[error("the authorization server does not list S256 in `code_challenge_methods_supported`")]
    NoPkce,
}

/// The metadata of an authorization server, as far as a client uses them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// The identifier of the server, which is compared as a string.
    pub issuer: String,
    /// Where the user authorizes the client.
    pub authorization_endpoint: Option<String>,
    /// Where tokens are issued.
    pub token_endpoint: String,
    /// Where clients register themselves (RFC 7591).
    pub registration_endpoint: Option<String>,
    /// Where tokens are revoked (RFC 7009).
    pub revocation_endpoint: Option<String>,
    /// The scopes that it knows.
    pub scopes_supported: Option<ScopeSet>,
    /// The grants that it supports; `None` means the default of RFC 8414.
    pub grant_types: Option<Vec<String>>,
    /// The PKCE methods that it supports.
    pub code_challenge_methods: Vec<String>,
    /// How clients may authenticate at the token endpoint.
    pub token_auth_methods: Option<Vec<String>>,
    /// The algorithms of client assertions.
    pub token_auth_algorithms: Vec<String>,
    /// The algorithms of DPoP proofs; empty if it has no DPoP.
    pub dpop_signing_algorithms: Vec<String>,
    /// Whether a client identifier may be the URL of a client metadata document.
    pub is_client_document_supported: bool,
    /// Whether authorization responses have the parameter `iss` (RFC 9207).
    pub is_issuer_in_response: bool,
}

impl ServerMetadata {
    /// Parses the document that was found for an issuer.
    ///
    /// # Errors
    /// The body is not a metadata document, is of another issuer, or has an endpoint without TLS.
    pub fn parse(body: &[u8], issuer: &str, policy: PlainHttpPolicy) -> Result<Self, MetadataError> {
        let document = JsonDocument::parse(body)?;
        let found = document.required("issuer")?;
        if found != issuer {
            return Err(MetadataError::IssuerMismatch { expected: issuer.to_owned(), found });
        }
        let endpoint = |member: &'static str| match document.text(member) {
            Some(url) => check_endpoint(&url, policy)
                .map(|_| Some(url))
                .map_err(|cause| MetadataError::Endpoint { member, cause }),
            None => Ok(None),
        };
        let scopes = document.texts("scopes_supported");
        Ok(Self {
            issuer: found,
            authorization_endpoint: endpoint("authorization_endpoint")?,
            token_endpoint: endpoint("token_endpoint")?.ok_or(DocumentError::Missing("token_endpoint"))?,
            registration_endpoint: endpoint("registration_endpoint")?,
            revocation_endpoint: endpoint("revocation_endpoint")?,
            scopes_supported: scopes.map(|scopes| scopes.iter().map(String::as_str).collect()),
            grant_types: document.texts("grant_types_supported"),
            code_challenge_methods: document.texts("code_challenge_methods_supported").unwrap_or_default(),
            token_auth_methods: document.texts("token_endpoint_auth_methods_supported"),
            token_auth_algorithms: document
                .texts("token_endpoint_auth_signing_alg_values_supported")
                .unwrap_or_default(),
            dpop_signing_algorithms: document.texts("dpop_signing_alg_values_supported").unwrap_or_default(),
            is_client_document_supported: document.is_true("client_id_metadata_document_supported"),
            is_issuer_in_response: document.is_true("authorization_response_iss_parameter_supported"),
        })
    }

    /// Returns the endpoints that revision 2025-03-26 prescribes for a server without metadata, at the origin of the
    /// MCP server. PKCE with S256 is used there too.
    pub fn default_endpoints(mcp_server: &Url) -> Self {
        let origin = mcp_server.origin();
        Self {
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: format!("{origin}/token"),
            registration_endpoint: Some(format!("{origin}/register")),
            code_challenge_methods: vec!["S256".to_owned()],
            issuer: origin,
            ..Self::default()
        }
    }

    /// Checks that the server protects codes by PKCE with S256.
    ///
    /// # Errors
    /// [`MetadataError::NoPkce`]: a server that does not list it might ignore the challenge.
    pub fn check_pkce(&self) -> Result<(), MetadataError> {
        let has_s256 = self.code_challenge_methods.iter().any(|method| method == "S256");
        if has_s256 { Ok(()) } else { Err(MetadataError::NoPkce) }
    }

    /// Reports whether a grant can be used: it is listed, or nothing is listed.
    pub fn allows_grant(&self, grant: &str) -> bool {
        self.grant_types.as_ref().is_none_or(|grants| grants.iter().any(|other| other == grant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: PlainHttpPolicy = PlainHttpPolicy::LoopbackOnly;

    #[test]
    fn server_metadata_are_parsed_tolerantly() {
        let body = br#"{"issuer":"https://a/t","authorization_endpoint":"https://a/auth?x=y",
            "token_endpoint":"https://a/token","code_challenge_methods_supported":["plain","S256"],
            "token_endpoint_auth_methods_supported":null,"grant_types_supported":["authorization_code"],
            "client_id_metadata_document_supported":true,"authorization_response_iss_parameter_supported":"true"}"#;
        let metadata = ServerMetadata::parse(body, "https://a/t", LOOPBACK).unwrap();
        assert_eq!(metadata.authorization_endpoint.as_deref(), Some("https://a/auth?x=y"));
        assert_eq!(
            (metadata.registration_endpoint.as_ref(), metadata.token_auth_methods.as_ref()),
            (None, None)
        );
        assert!(metadata.is_client_document_supported && !metadata.is_issuer_in_response);
        assert!(metadata.allows_grant("authorization_code") && !metadata.allows_grant("refresh_token"));
        assert_eq!(metadata.check_pkce(), Ok(()));
    }

    #[test]
    fn issuers_are_compared_as_strings() {
        for found in ["https://a/", "https://A", "https://a:443", "https://evil.example"] {
            let body = format!(r#"{{"issuer":"{found}","token_endpoint":"https://a/token"}}"#);
            let error = ServerMetadata::parse(body.as_bytes(), "https://a", LOOPBACK).unwrap_err();
            let (expected, found) = ("https://a".to_owned(), found.to_owned());
            assert_eq!(error, MetadataError::IssuerMismatch { expected, found });
        }
    }

    #[test]
    fn endpoints_without_tls_are_refused() {
        for member in ["authorization_endpoint", "registration_endpoint", "token_endpoint"] {
            let body =
                format!(r#"{{"token_endpoint":"https://a/t","{member}":"http://a/x","issuer":"https://a"}}"#);
            let error = ServerMetadata::parse(body.as_bytes(), "https://a", LOOPBACK).unwrap_err();
            assert_eq!(error, MetadataError::Endpoint { member, cause: EndpointError::PlainHttp });
            assert!(ServerMetadata::parse(body.as_bytes(), "https://a", PlainHttpPolicy::Anywhere).is_ok());
        }
    }

    #[test]
    fn servers_without_s256_are_refused() {
        for methods in ["", r#","code_challenge_methods_supported":["plain"]"#] {
            let body = format!(r#"{{"issuer":"https://a","token_endpoint":"https://a/t"{methods}}}"#);
            let metadata = ServerMetadata::parse(body.as_bytes(), "https://a", LOOPBACK).unwrap();
            assert_eq!(metadata.check_pkce(), Err(MetadataError::NoPkce));
        }
        let metadata = ServerMetadata::default_endpoints(&"https://h:8/v1/mcp?x".parse().unwrap());
        assert_eq!(metadata.check_pkce(), Ok(()));
        assert_eq!(metadata.token_endpoint, "https://h:8/token");
    }
}
