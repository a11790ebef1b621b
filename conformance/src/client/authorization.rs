//! How the fixture is authorized: by a user agent that follows the suite's redirect without a browser, or by the credentials
//! that the scenario's context has.

use bytes::Bytes;
use serde_json::Value;
use trunkline::Result;
use trunkline_auth::fetch::{FetchLimits, Fetcher};
use trunkline_auth::token_request::ID_TOKEN_TYPE;
use trunkline_client::BoxFuture;
use trunkline_client::authorization::{
    AuthorizationGrant, AuthorizationOptions, ClientCredential, ClientDocument, CredentialSource,
    PreparedRedirect, SigningKey, UserAgent, UserAgentError,
};
use trunkline_client::transport::Secret;
use trunkline_client::transport::dial::Dialer;

/// The redirect URI that the suite expects; nothing listens there.
const REDIRECT_URI: &str = "http://localhost:3000/callback";

/// The client metadata document that the suite knows, and never fetches.
pub(super) const CLIENT_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// Requests the authorization page itself, and takes the redirect from its response.
#[derive(Clone, Debug)]
struct RedirectFollower;

#[derive(Debug, Default)]
struct FollowedRedirect {
    page: String,
}

impl UserAgent for RedirectFollower {
    fn prepare<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Box<dyn PreparedRedirect>, UserAgentError>> {
        Box::pin(async { Ok(Box::new(FollowedRedirect::default()) as Box<dyn PreparedRedirect>) })
    }
}

impl PreparedRedirect for FollowedRedirect {
    fn redirect_uri(&self) -> &str {
        REDIRECT_URI
    }

    fn open(&mut self, page: &str) -> Result<(), UserAgentError> {
        page.clone_into(&mut self.page);
        Ok(())
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<String, UserAgentError>> {
        Box::pin(async {
            let failed = |why: String| UserAgentError::Unavailable(why);
            let request = http::Request::get(&self.page).body(Bytes::new());
            let request = request.map_err(|error| failed(error.to_string()))?;
            let fetcher = Fetcher::new(Dialer::default(), FetchLimits::default());
            let response = fetcher.fetch(request).await.map_err(|error| failed(error.to_string()))?;
            let location =
                response.headers().get(http::header::LOCATION).and_then(|value| value.to_str().ok());
            let location =
                location.ok_or_else(|| failed(format!("status {}, no redirect", response.status())))?;
            Ok(location.to_owned())
        })
    }
}

/// Chooses how a scenario is authorized.
///
/// # Errors
/// The context lacks something.
pub(super) fn options(scenario: &str, context: &Value) -> Result<AuthorizationOptions> {
    let text = |name: &str| -> Result<String> {
        let value = context[name].as_str().ok_or_else(|| format!("the context has no `{name}`"))?;
        Ok(value.to_owned())
    };
    let options = match scenario {
        "auth/client-credentials-basic" => {
            AuthorizationOptions::client_secret(text("client_id")?, text("client_secret")?)
        }
        "auth/client-credentials-jwt" => {
            let key = SigningKey::from_pem(text("private_key_pem")?.as_bytes(), None)?;
            AuthorizationOptions::client_key(text("client_id")?, key)
        }
        "auth/enterprise-managed-authorization" => {
            let grant = AuthorizationGrant::EnterpriseManaged {
                token_endpoint: text("idp_token_endpoint")?,
                client_id: text("idp_client_id")?,
                client_secret: None,
                subject_token: CredentialSource::Value(Secret::new(text("idp_id_token")?)),
                subject_token_type: ID_TOKEN_TYPE.to_owned(),
            };
            let secret = ClientCredential::Secret(Secret::new(text("client_secret")?));
            AuthorizationOptions::with_grant(grant).with_client(text("client_id")?, secret)
        }
        "auth/wif-jwt-bearer" => {
            let assertion = CredentialSource::Value(Secret::new(text("valid_jwt")?));
            AuthorizationOptions::workload_identity(assertion)
                .with_client(text("client_id")?, ClientCredential::Public)
        }
        "auth/pre-registration" => {
            let secret = ClientCredential::Secret(Secret::new(text("client_secret")?));
            AuthorizationOptions::code_flow(RedirectFollower).with_client(text("client_id")?, secret)
        }
        _ => AuthorizationOptions::code_flow(RedirectFollower),
    };
    Ok(options.with_client_document(ClientDocument::new(CLIENT_DOCUMENT, ClientCredential::Public)?))
}
