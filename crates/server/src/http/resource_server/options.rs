use std::collections::BTreeMap;

use serde_json::Value;
use trunkline_auth::access_token::{KeyCachePolicy, VerifiedTokenLimits};
use trunkline_auth::issuer::TrustedIssuer;
use trunkline_transport::dial::Dialer;

use super::dpop::DpopOptions;
use crate::http::auth::BearerTokens;

/// Which credentials a resource server accepts, and how it describes itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResourceServerOptions {
    /// The public URL of the endpoint, byte for byte as clients connect to it.
    pub resource: String,
    /// The path of the endpoint behind any proxy. By default the path of the public URL.
    pub endpoint_path: Option<String>,
    /// The trusted issuers.
    pub issuers: Vec<TrustedIssuer>,
    /// Static tokens that are accepted beside those of the issuers. They need no scope.
    pub static_tokens: Option<BearerTokens>,
    /// The scopes that every access token must have; challenges name them.
    pub required_scopes: Vec<String>,
    /// Further scopes that clients may request, for the metadata.
    pub optional_scopes: Vec<String>,
    /// The scopes that a scope includes: `("files", ["files:read", "files:write"])`.
    pub implied_scopes: BTreeMap<String, Vec<String>>,
    /// Whether tokens may or must be bound to a key of the client ([RFC 9449](https://www.rfc-editor.org/rfc/rfc9449)).
    pub dpop: DpopOptions,
    /// Other members of the metadata, such as `resource_name`.
    pub metadata: BTreeMap<String, Value>,
    /// How issuers are reached: proxies, certificate authorities and timeouts.
    pub dialer: Dialer,
    /// When keys of issuers are fetched.
    pub key_cache: KeyCachePolicy,
    /// The bounds of the cache of verified tokens; they stay when the options are replaced.
    pub verified_tokens: VerifiedTokenLimits,
}

impl ResourceServerOptions {
    /// Describes the endpoint at a public URL, without any credential that it accepts.
    pub fn new(resource: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            endpoint_path: None,
            issuers: Vec::new(),
            static_tokens: None,
            required_scopes: Vec::new(),
            optional_scopes: Vec::new(),
            implied_scopes: BTreeMap::new(),
            dpop: DpopOptions::default(),
            metadata: BTreeMap::new(),
            dialer: Dialer::default(),
            key_cache: KeyCachePolicy::default(),
            verified_tokens: VerifiedTokenLimits::default(),
        }
    }

    /// Trusts an issuer.
    #[must_use]
    pub fn with_issuer(mut self, issuer: TrustedIssuer) -> Self {
        self.issuers.push(issuer);
        self
    }

    /// Accepts static tokens too.
    #[must_use]
    pub fn with_static_tokens(mut self, tokens: BearerTokens) -> Self {
        self.static_tokens = Some(tokens);
        self
    }

    /// Requires scopes of every access token.
    #[must_use]
    pub fn with_required_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.required_scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Returns scopes with all that they imply, each once.
    pub(super) fn expand_scopes(&self, granted: &[String]) -> Vec<Box<str>> {
        let mut all: Vec<&str> = Vec::new();
        let mut pending: Vec<&str> = granted.iter().rev().map(String::as_str).collect();
        while let Some(scope) = pending.pop() {
            if !all.contains(&scope) {
                all.push(scope);
                pending.extend(self.implied_scopes.get(scope).into_iter().flatten().map(String::as_str));
            }
        }
        all.into_iter().map(Box::from).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_include_all_that_they_imply() {
        let mut options = ResourceServerOptions::new("https://hub.example/mcp");
        for (scope, implied) in
            [("admin", &["files", "admin"][..]), ("files", &["files:read", "files:write"])]
        {
            let implied = implied.iter().map(|scope| (*scope).to_owned()).collect();
            options.implied_scopes.insert(scope.to_owned(), implied);
        }
        let expand = |scopes: &[&str]| {
            let scopes: Vec<String> = scopes.iter().map(|scope| (*scope).to_owned()).collect();
            options.expand_scopes(&scopes).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(expand(&["x", "files:read"]), ["x", "files:read"]);
        let mut admin = expand(&["admin", "x"]);
        admin.sort();
        assert_eq!(admin, ["admin", "files", "files:read", "files:write", "x"]);
        assert!(expand(&[]).is_empty());
    }
}
