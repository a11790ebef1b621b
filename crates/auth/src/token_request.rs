//! Requests to a token endpoint, for all grants and all ways in which a client authenticates.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Request, header};
use trunkline_transport::Secret;

use crate::form::{FormParameters, encode};
use crate::registration::ClientCredential;
use crate::scopes::ScopeSet;

/// The token type of an identity assertion for another domain (ID-JAG).
pub const ID_JAG_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// The token type of an OpenID Connect ID token (RFC 8693 §3).
pub const ID_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id_token";

/// The token type of an access token (RFC 8693 §3).
pub const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";

/// The token type of a JWT (RFC 8693 §3).
pub const JWT_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:jwt";

/// The grant type of JWT assertions (RFC 7523 §2.1).
pub const JWT_BEARER_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

const TOKEN_EXCHANGE_GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const CLIENT_ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenAuthMethod {
    /// By its identifier only.
    #[default]
    None,
    /// With its secret in the `Authorization` header (RFC 6749 §2.3.1).
    ClientSecretBasic,
    /// With its secret in the body.
    ClientSecretPost,
    /// With a signed assertion (RFC 7523 §2.2).
    PrivateKeyJwt,
}

impl TokenAuthMethod {
    const ALL: [Self; 4] = [Self::None, Self::ClientSecretBasic, Self::ClientSecretPost, Self::PrivateKeyJwt];

    /// Returns its registered name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClientSecretBasic => "client_secret_basic",
            Self::ClientSecretPost => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    /// Returns the method of a registered name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }

    /// Reports whether a client with this credential can use the method.
    pub fn fits(self, credential: &ClientCredential) -> bool {
        match self {
            Self::None => true,
            Self::ClientSecretBasic | Self::ClientSecretPost => {
                matches!(credential, ClientCredential::Secret(_))
            }
            Self::PrivateKeyJwt => *credential == ClientCredential::PrivateKey,
        }
    }
}

/// Chooses the method for a credential among those that the server lists; without a list a secret is sent by
/// `client_secret_basic`, the default of RFC 8414.
pub fn choose_auth_method(credential: &ClientCredential, listed: Option<&[String]>) -> TokenAuthMethod {
    let lists = |method: TokenAuthMethod| {
        listed.is_some_and(|listed| listed.iter().any(|other| other == method.as_str()))
    };
    match credential {
        ClientCredential::Public => TokenAuthMethod::None,
        ClientCredential::PrivateKey => TokenAuthMethod::PrivateKeyJwt,
        ClientCredential::Secret(_) if lists(TokenAuthMethod::ClientSecretBasic) => {
            TokenAuthMethod::ClientSecretBasic
        }
        ClientCredential::Secret(_) if lists(TokenAuthMethod::ClientSecretPost) => {
            TokenAuthMethod::ClientSecretPost
        }
        ClientCredential::Secret(_) if lists(TokenAuthMethod::None) => TokenAuthMethod::None,
        ClientCredential::Secret(_) => TokenAuthMethod::ClientSecretBasic,
    }
}

/// The authentication of a client in one token request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// No client at all, as workloads with an assertion may have it.
    Anonymous,
    /// A public client.
    Public {
        /// Its identifier.
        client_id: String,
    },
    /// A secret in the `Authorization` header.
    Basic {
        /// Its identifier.
        client_id: String,
        /// Its secret.
        secret: Secret,
    },
    /// A secret in the body.
    Post {
        /// Its identifier.
        client_id: String,
        /// Its secret.
        secret: Secret,
    },
    /// A signed assertion, which is used once.
    Assertion {
        /// Its identifier.
        client_id: String,
        /// The JWT that the driver signed.
        assertion: Secret,
    },
}

impl ClientAuthentication {
    /// Returns the authentication with a secret, or by identifier without one.
    pub fn new(client_id: &str, credential: &ClientCredential, method: TokenAuthMethod) -> Self {
        let client_id = client_id.to_owned();
        match (credential, method) {
            (ClientCredential::Secret(secret), TokenAuthMethod::ClientSecretBasic) => {
                Self::Basic { client_id, secret: secret.clone() }
            }
            (ClientCredential::Secret(secret), TokenAuthMethod::ClientSecretPost) => {
                Self::Post { client_id, secret: secret.clone() }
            }
            _ => Self::Public { client_id },
        }
    }

    pub(crate) fn apply(&self, form: &mut FormParameters) -> Option<HeaderValue> {
        match self {
            Self::Anonymous => {}
            Self::Public { client_id } => form.push("client_id", client_id),
            Self::Basic { client_id, secret } => return basic_header(client_id, secret),
            Self::Post { client_id, secret } => {
                form.push("client_id", client_id);
                form.push("client_secret", secret.expose());
            }
            Self::Assertion { client_id, assertion } => {
                form.push("client_id", client_id);
                form.push("client_assertion_type", CLIENT_ASSERTION_TYPE);
                form.push("client_assertion", assertion.expose());
            }
        }
        None
    }
}

/// Encodes identifier and secret as a form before Base64, which RFC 6749 §2.3.1 requires: either may have a colon.
fn basic_header(client_id: &str, secret: &Secret) -> Option<HeaderValue> {
    let pair = format!("{}:{}", encode(client_id), encode(secret.expose()));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The grant of one token request (RFC 6749 §4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenGrant {
    /// The code of an authorization response.
    AuthorizationCode {
        /// The code, which is used once.
        code: Secret,
        /// The redirect URI of the authorization request.
        redirect_uri: String,
        /// The PKCE verifier.
        verifier: Secret,
    },
    /// A refresh token.
    RefreshToken(Secret),
    /// The client itself.
    ClientCredentials,
    /// An assertion of another issuer (RFC 7523).
    JwtBearer(Secret),
    /// Exchanges a token for another one (RFC 8693).
    TokenExchange {
        /// The token to exchange.
        subject_token: Secret,
        /// Its type.
        subject_token_type: String,
        /// The type of the requested token.
        requested_token_type: String,
        /// For which authorization server or service it is, if the resource is not enough.
        audience: Option<String>,
    },
}

impl TokenGrant {
    fn apply(&self, form: &mut FormParameters) {
        match self {
            Self::AuthorizationCode { code, redirect_uri, verifier } => {
                form.push("grant_type", "authorization_code");
                form.push("code", code.expose());
                form.push("redirect_uri", redirect_uri);
                form.push("code_verifier", verifier.expose());
            }
            Self::RefreshToken(token) => {
                form.push("grant_type", "refresh_token");
                form.push("refresh_token", token.expose());
            }
            Self::ClientCredentials => form.push("grant_type", "client_credentials"),
            Self::JwtBearer(assertion) => {
                form.push("grant_type", JWT_BEARER_GRANT);
                form.push("assertion", assertion.expose());
            }
            Self::TokenExchange { subject_token, subject_token_type, requested_token_type, audience } => {
                form.push("grant_type", TOKEN_EXCHANGE_GRANT);
                form.push("requested_token_type", requested_token_type);
                form.push_some("audience", audience.as_deref());
                form.push("subject_token", subject_token.expose());
                form.push("subject_token_type", subject_token_type);
            }
        }
    }
}

/// A request to a token endpoint.
#[derive(Clone, Debug)]
pub struct TokenRequest<'a> {
    /// The URL of the endpoint.
    pub endpoint: &'a str,
    /// What the token is requested with.
    pub grant: &'a TokenGrant,
    /// How the client authenticates.
    pub client: &'a ClientAuthentication,
    /// The resource that the token is for, as its metadata name it (RFC 8707).
    pub resource: Option<&'a str>,
    /// The scopes; empty to omit the parameter.
    pub scopes: &'a ScopeSet,
}

impl TokenRequest<'_> {
    /// Returns the HTTP request. Its body has secrets, so it must not be logged.
    ///
    /// # Errors
    /// The endpoint is not a usable URL.
    pub fn build(&self) -> Result<Request<Bytes>, http::Error> {
        let mut form = FormParameters::default();
        self.grant.apply(&mut form);
        form.push_some("resource", self.resource);
        if !self.scopes.is_empty() {
            form.push("scope", &self.scopes.to_string());
        }
        let authorization = self.client.apply(&mut form);
        let mut request = Request::post(self.endpoint)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json");
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        request.body(Bytes::from(form.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(grant: &TokenGrant, client: &ClientAuthentication, scopes: &str) -> (Option<String>, String) {
        let request = TokenRequest {
            endpoint: "https://a/token?tenant=1",
            grant,
            client,
            resource: Some("https://h/mcp"),
            scopes: &ScopeSet::parse(scopes),
        };
        let request = request.build().unwrap();
        assert_eq!(request.uri(), "https://a/token?tenant=1");
        let header = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
        (header, String::from_utf8(request.body().to_vec()).unwrap())
    }

    #[test]
    fn token_requests_have_the_parameters_of_their_grant() {
        let secret = Secret::new;
        let code = TokenGrant::AuthorizationCode {
            code: secret("c d"),
            redirect_uri: "http://localhost:1/cb".to_owned(),
            verifier: secret("v"),
        };
        let exchange = TokenGrant::TokenExchange {
            subject_token: secret("id"),
            subject_token_type: "t".to_owned(),
            requested_token_type: "r".to_owned(),
            audience: Some("https://a".to_owned()),
        };
        let table = [
            (
                code,
                "grant_type=authorization_code&code=c+d&redirect_uri=http%3A%2F%2Flocalhost%3A1%2Fcb&code_verifier=v",
            ),
            (TokenGrant::RefreshToken(secret("r")), "grant_type=refresh_token&refresh_token=r"),
            (TokenGrant::ClientCredentials, "grant_type=client_credentials"),
            (
                TokenGrant::JwtBearer(secret("j")),
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=j",
            ),
            (
                exchange,
                "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&requested_token_type=r\
                 &audience=https%3A%2F%2Fa&subject_token=id&subject_token_type=t",
            ),
        ];
        for (grant, expected) in table {
            let (header, body) = build(&grant, &ClientAuthentication::Anonymous, "");
            assert_eq!((header, body), (None, format!("{expected}&resource=https%3A%2F%2Fh%2Fmcp")));
        }
    }

    #[test]
    fn clients_authenticate_by_every_method() {
        let client_id = || "i:d".to_owned();
        let table = [
            (ClientAuthentication::Public { client_id: client_id() }, None, "&client_id=i%3Ad"),
            (
                ClientAuthentication::Post { client_id: client_id(), secret: Secret::new("s&") },
                None,
                "&client_id=i%3Ad&client_secret=s%26",
            ),
            (
                ClientAuthentication::Basic { client_id: client_id(), secret: Secret::new("s s") },
                Some(format!("Basic {}", STANDARD.encode("i%3Ad:s+s"))),
                "",
            ),
            (
                ClientAuthentication::Assertion { client_id: client_id(), assertion: Secret::new("j") },
                None,
                "&client_id=i%3Ad&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3A\
                 jwt-bearer&client_assertion=j",
            ),
        ];
        for (client, expected_header, expected) in table {
            let (header, body) = build(&TokenGrant::ClientCredentials, &client, "a b");
            let start = "grant_type=client_credentials&resource=https%3A%2F%2Fh%2Fmcp&scope=a+b";
            assert_eq!((header, body), (expected_header, format!("{start}{expected}")));
        }
    }

    #[test]
    fn auth_methods_follow_the_list_of_the_server() {
        let secret = ClientCredential::Secret(Secret::new("s"));
        let table: [(&ClientCredential, Option<&[&str]>, &str); 8] = [
            (&ClientCredential::Public, None, "none"),
            (&ClientCredential::Public, Some(&["client_secret_basic"]), "none"),
            (&ClientCredential::PrivateKey, None, "private_key_jwt"),
            (&secret, None, "client_secret_basic"),
            (&secret, Some(&["client_secret_post"]), "client_secret_post"),
            (&secret, Some(&["client_secret_post", "client_secret_basic"]), "client_secret_basic"),
            (&secret, Some(&["none"]), "none"),
            (&secret, Some(&[]), "client_secret_basic"),
        ];
        for (credential, listed, expected) in table {
            let listed: Option<Vec<String>> =
                listed.map(|listed| listed.iter().map(|s| (*s).to_owned()).collect());
            assert_eq!(choose_auth_method(credential, listed.as_deref()).as_str(), expected);
        }
        assert_eq!(TokenAuthMethod::parse("tls_client_auth"), None);
    }
}
