//! The request that the user's browser takes to the authorization server
//! ([RFC 6749 §4.1.1](https://www.rfc-editor.org/rfc/rfc6749#section-4.1.1)).

use std::fmt;

use crate::form::FormParameters;
use crate::pkce::FlowRandom;
use crate::scopes::{OFFLINE_ACCESS, ScopeSet};

/// A request for authorization by the user.
#[derive(Clone, Debug)]
pub struct AuthorizationRequest<'a> {
    /// The authorization endpoint; its query is kept.
    pub endpoint: &'a str,
    /// The identifier of the client.
    pub client_id: &'a str,
    /// Where the response goes.
    pub redirect_uri: &'a str,
    /// The resource, as its metadata name it (RFC 8707).
    pub resource: Option<&'a str>,
    /// The scopes; empty to omit the parameter.
    pub scopes: &'a ScopeSet,
    /// The thumbprint of the DPoP key that the code is bound to (RFC 9449 §10).
    pub dpop_thumbprint: Option<&'a str>,
    /// The verifier and the state.
    pub random: &'a FlowRandom,
}

impl AuthorizationRequest<'_> {
    /// Returns the URL to open.
    pub fn url(&self) -> String {
        let mut form = FormParameters::default();
        form.push("response_type", "code");
        form.push("client_id", self.client_id);
        form.push("redirect_uri", self.redirect_uri);
        form.push("state", self.random.state.expose());
        form.push("code_challenge", &self.random.verifier.challenge());
        form.push("code_challenge_method", "S256");
        form.push_some("resource", self.resource);
        if !self.scopes.is_empty() {
            form.push("scope", &self.scopes.to_string());
        }
        if self.scopes.contains(OFFLINE_ACCESS) {
            // OpenID Connect Core §11: without consent the scope is ignored.
            form.push("prompt", "consent");
        }
        form.push_some("dpop_jkt", self.dpop_thumbprint);
        let separator = match self.endpoint.split_once('?') {
            None => "?",
            Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
            Some(_) => "&",
        };
        format!("{}{separator}{}", self.endpoint, form.finish())
    }
}

/// A page for the user to open. Its `Debug` output has no query, which holds the `state`.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthorizationPage {
    /// The URL to open, with HTTPS or on the loopback.
    pub url: String,
    /// Where the response is expected.
    pub redirect_uri: String,
    /// The issuer that the user authorizes the client at, to show.
    pub issuer: String,
    /// The scopes that are requested, to show.
    pub scopes: ScopeSet,
}

impl fmt::Debug for AuthorizationPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = self.url.split('?').next().unwrap_or_default();
        f.debug_struct("AuthorizationPage")
            .field("endpoint", &endpoint)
            .field("redirect_uri", &self.redirect_uri)
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorization_urls_keep_the_query_of_the_endpoint() {
        let random = FlowRandom::draw(|bytes| bytes.fill(7));
        let (state, challenge) = (random.state.expose(), random.verifier.challenge());
        let base = format!(
            "response_type=code&client_id=i&redirect_uri=http%3A%2F%2Flocalhost%3A1%2Fcb&state={state}\
             &code_challenge={challenge}&code_challenge_method=S256"
        );
        let all = "&resource=https%3A%2F%2Fh&scope=a+offline_access&prompt=consent&dpop_jkt=j";
        let table = [
            ("https://a/auth", None, "", None, format!("https://a/auth?{base}")),
            ("https://a/auth?x=y", None, "", None, format!("https://a/auth?x=y&{base}")),
            ("https://a/auth?", None, "", None, format!("https://a/auth?{base}")),
            (
                "https://a/a",
                Some("https://h"),
                "a offline_access",
                Some("j"),
                format!("https://a/a?{base}{all}"),
            ),
        ];
        for (endpoint, resource, scopes, dpop_thumbprint, expected) in table {
            let request = AuthorizationRequest {
                endpoint,
                client_id: "i",
                redirect_uri: "http://localhost:1/cb",
                resource,
                scopes: &ScopeSet::parse(scopes),
                dpop_thumbprint,
                random: &random,
            };
            assert_eq!(request.url(), expected);
        }
    }

    #[test]
    fn authorization_pages_are_printed_without_state() {
        let page = AuthorizationPage {
            url: "https://a/auth?state=sentinel".to_owned(),
            redirect_uri: "http://localhost:1/cb".to_owned(),
            issuer: "https://a".to_owned(),
            scopes: ScopeSet::default(),
        };
        let text = format!("{page:?}");
        assert!(text.contains("https://a/auth") && !text.contains("sentinel"));
    }
}
