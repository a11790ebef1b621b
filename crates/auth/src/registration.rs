//! How a client is known to an authorization server: registered by its operator, by a client metadata document, or
//! dynamically ([RFC 7591](https://www.rfc-editor.org/rfc/rfc7591)).
//!
//! Credentials belong to the issuer that gave them (MCP, Authorization Server Binding): they are never sent to
//! another one. The URL of a client metadata document is public, and the same for all issuers.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use serde_json::json;
use trunkline_http1::Url;
use trunkline_transport::Secret;

use crate::endpoint_url::{PlainHttpPolicy, check_endpoint};
use crate::json_document::{DocumentError, JsonDocument};
use crate::oauth_error::OauthError;
use crate::server_metadata::ServerMetadata;
use crate::token_request::{TokenAuthMethod, choose_auth_method};

/// What a client proves its identity with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientCredential {
    /// Nothing: a public client.
    #[default]
    Public,
    /// A secret that both sides know.
    Secret(Secret),
    /// A private key, with which the driver signs assertions (RFC 7523).
    PrivateKey,
}

/// A client that its operator registered at an authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreregisteredClient {
    /// The issuer where it is registered. Without one it is used at any issuer, and the caller should bind it to the
    /// issuer of the first [`ClientRegistration`] that it gets.
    pub issuer: Option<String>,
    /// Its identifier.
    pub client_id: String,
    /// What it authenticates with.
    pub credential: ClientCredential,
}

/// A client metadata document that the operator publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientDocument {
    /// Its URL, which is the identifier of the client.
    pub url: String,
    /// What the client authenticates with; a document has no shared secrets.
    pub credential: ClientCredential,
}

/// The URL is none of a client metadata document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the URL of a client metadata document has to use https, and to have a path")]
pub struct ClientDocumentError;

impl ClientDocument {
    /// Makes a document of its URL.
    ///
    /// # Errors
    /// The URL has no TLS, no path, or a fragment (MCP, Client ID Metadata Documents).
    pub fn new(url: impl Into<String>, credential: ClientCredential) -> Result<Self, ClientDocumentError> {
        let url = url.into();
        let parsed = check_endpoint(&url, PlainHttpPolicy::LoopbackOnly).map_err(|_| ClientDocumentError)?;
        let has_path = !parsed.path_and_query().starts_with("/?") && parsed.path_and_query() != "/";
        match parsed.scheme().is_encrypted() && has_path {
            true => Ok(Self { url, credential }),
            false => Err(ClientDocumentError),
        }
    }
}

/// How a registration came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationSource {
    /// The operator configured it.
    Preregistered,
    /// It is the URL of a client metadata document.
    ClientDocument,
    /// It was made by dynamic registration, and may be made again.
    Dynamic,
}

/// A client as one authorization server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRegistration {
    /// The issuer to which it belongs.
    pub issuer: String,
    /// Its identifier there.
    pub client_id: String,
    /// What it authenticates with.
    pub credential: ClientCredential,
    /// How it authenticates at the token endpoint.
    pub auth_method: TokenAuthMethod,
    /// How it came to be.
    pub source: RegistrationSource,
    /// The redirect URI that it was registered with.
    pub redirect_uri: Option<String>,
    /// When its secret expires.
    pub secret_expires_at: Option<SystemTime>,
}

impl ClientRegistration {
    /// Returns it as it is stored where its secret is configured.
    pub(crate) fn without_secret(&self) -> Self {
        let credential = match &self.credential {
            ClientCredential::Secret(_) => ClientCredential::Public,
            other => other.clone(),
        };
        Self { credential, ..self.clone() }
    }

    /// Reports whether it authenticates with a secret that was not stored.
    pub(crate) fn lacks_secret(&self) -> bool {
        self.credential == ClientCredential::Public && self.auth_method != TokenAuthMethod::None
    }
}

/// How the client becomes known to an authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientChoice {
    /// It is known.
    Use(ClientRegistration),
    /// It has to register at this endpoint.
    Register(String),
    /// There is no way: the operator has to register a client.
    Unavailable,
}

/// What can identify the client.
#[derive(Clone, Debug)]
pub struct ClientSources<'a> {
    /// Clients that the operator registered.
    pub preregistered: &'a [PreregisteredClient],
    /// The client metadata document.
    pub document: Option<&'a ClientDocument>,
    /// Registrations that were made before.
    pub dynamic: &'a [ClientRegistration],
    /// The redirect URI in use; `None` for grants without a user.
    pub redirect_uri: Option<&'a str>,
}

impl ClientSources<'_> {
    /// Chooses in the order of MCP, Client Registration Approaches: registered by the operator, client metadata document,
    /// dynamic registration. Grants without a user have the first only.
    pub fn choose(&self, server: &ServerMetadata, now: SystemTime) -> ClientChoice {
        if let Some(client) = self.preregistered_at(&server.issuer) {
            return ClientChoice::Use(known(server, client.client_id.clone(), &client.credential, None));
        }
        let Some(redirect_uri) = self.redirect_uri else { return ClientChoice::Unavailable };
        if let Some(document) = self.document.filter(|_| server.is_client_document_supported) {
            let mut client = known(server, document.url.clone(), &document.credential, Some(redirect_uri));
            client.source = RegistrationSource::ClientDocument;
            return ClientChoice::Use(client);
        }
        // Servers may compare the port of a loopback redirect URI, although RFC 8252 §7.3 forbids it.
        let is_usable = |client: &&ClientRegistration| {
            client.issuer == server.issuer
                && client.redirect_uri.as_deref() == Some(redirect_uri)
                && client.secret_expires_at.is_none_or(|expiry| expiry > now)
        };
        match (self.dynamic.iter().find(is_usable), &server.registration_endpoint) {
            (Some(client), _) => ClientChoice::Use(client.clone()),
            (None, Some(endpoint)) => ClientChoice::Register(endpoint.clone()),
            (None, None) => ClientChoice::Unavailable,
        }
    }

    /// Prefers a client that is bound to the issuer to one that is bound to none.
    fn preregistered_at(&self, issuer: &str) -> Option<&PreregisteredClient> {
        let bound = self.preregistered.iter().find(|client| client.issuer.as_deref() == Some(issuer));
        bound.or_else(|| self.preregistered.iter().find(|client| client.issuer.is_none()))
    }
}

fn known(
    server: &ServerMetadata,
    client_id: String,
    credential: &ClientCredential,
    redirect_uri: Option<&str>,
) -> ClientRegistration {
    ClientRegistration {
        issuer: server.issuer.clone(),
        client_id,
        credential: credential.clone(),
        auth_method: choose_auth_method(credential, server.token_auth_methods.as_deref()),
        source: RegistrationSource::Preregistered,
        redirect_uri: redirect_uri.map(str::to_owned),
        secret_expires_at: None,
    }
}

/// Returns the request of a dynamic registration.
///
/// # Errors
/// The endpoint is not a usable URL.
pub fn registration_request(
    server: &ServerMetadata,
    endpoint: &str,
    client_name: &str,
    redirect_uri: &str,
) -> Result<Request<Bytes>, http::Error> {
    let methods = server.token_auth_methods.as_deref();
    let lists = |method: &str| methods.is_none_or(|methods| methods.iter().any(|other| other == method));
    let auth_method = if lists("none") {
        TokenAuthMethod::None
    } else if lists("client_secret_basic") {
        TokenAuthMethod::ClientSecretBasic
    } else {
        TokenAuthMethod::ClientSecretPost
    };
    let mut grants = vec!["authorization_code"];
    grants.extend(server.allows_grant("refresh_token").then_some("refresh_token"));
    let body = json!({
        "client_name": client_name,
        "redirect_uris": [redirect_uri],
        "grant_types": grants,
        "response_types": ["code"],
        "token_endpoint_auth_method": auth_method.as_str(),
        "application_type": application_type(redirect_uri),
    });
    Request::post(endpoint)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json")
        .body(Bytes::from(body.to_string()))
}

/// Returns `web` for a redirect to a remote web application, and `native` for one to this machine or to an
/// application's own scheme (OpenID Connect Dynamic Client Registration §2).
fn application_type(redirect_uri: &str) -> &'static str {
    let is_remote = redirect_uri.parse::<Url>().is_ok_and(|url| !url.is_loopback());
    if is_remote { "web" } else { "native" }
}

/// The reason why a registration failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistrationError {
    /// The server refused it.
    #[error("the authorization server refused the registration: {0}")]
    Refused(OauthError),
    /// The server answered with another status, and without an error in its body.
    #[error("the registration endpoint responded with status {0}")]
    Status(StatusCode),
    /// The response is not a registration.
    #[error("the registration response is unusable: {0}")]
    Document(#[from] DocumentError),
}

/// Reads the response of a dynamic registration.
///
/// # Errors
/// See [`RegistrationError`].
pub fn read_registration(
    response: &Response<Bytes>,
    server: &ServerMetadata,
    redirect_uri: &str,
) -> Result<ClientRegistration, RegistrationError> {
    let document = JsonDocument::parse(response.body());
    if !response.status().is_success() {
        let error = document.ok().as_ref().and_then(OauthError::read);
        return Err(error.map_or(RegistrationError::Status(response.status()), RegistrationError::Refused));
    }
    let document = document?;
    let client_id = document.required("client_id")?;
    let credential = match document.text("client_secret") {
        Some(secret) => ClientCredential::Secret(Secret::new(secret)),
        None => ClientCredential::Public,
    };
    let mut client = known(server, client_id, &credential, Some(redirect_uri));
    client.source = RegistrationSource::Dynamic;
    let returned = document.text("token_endpoint_auth_method");
    if let Some(method) = returned.and_then(|name| TokenAuthMethod::parse(&name))
        && method.fits(&credential)
    {
        client.auth_method = method;
    }
    let expiry = document.seconds("client_secret_expires_at").filter(|seconds| *seconds > 0);
    client.secret_expires_at =
        expiry.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDIRECT: &str = "http://localhost:3000/callback";

    fn server(issuer: &str, extra: &str) -> ServerMetadata {
        let body = format!(r#"{{"issuer":"{issuer}","token_endpoint":"https://a/token"{extra}}}"#);
        ServerMetadata::parse(body.as_bytes(), issuer, PlainHttpPolicy::LoopbackOnly).unwrap()
    }

    fn preregistered(issuer: Option<&str>, id: &str) -> PreregisteredClient {
        let credential = ClientCredential::Secret(Secret::new("s"));
        PreregisteredClient { issuer: issuer.map(str::to_owned), client_id: id.to_owned(), credential }
    }

    fn dynamic(issuer: &str, redirect: &str) -> ClientRegistration {
        let mut client =
            known(&server(issuer, ""), "dynamic".to_owned(), &ClientCredential::Public, Some(redirect));
        client.source = RegistrationSource::Dynamic;
        client
    }

    #[test]
    fn client_documents_have_an_https_url_with_a_path() {
        let table = [
            ("https://c.example/client.json", true),
            ("https://c.example", false),
            ("https://c.example/?a", false),
            ("http://localhost/client.json", false),
            ("https://c.example/client.json#a", false),
        ];
        for (url, is_valid) in table {
            assert_eq!(ClientDocument::new(url, ClientCredential::Public).is_ok(), is_valid, "{url}");
        }
    }

    #[test]
    fn clients_are_chosen_in_the_order_of_the_specification() {
        let document =
            ClientDocument::new("https://c.example/client.json", ClientCredential::Public).unwrap();
        let both =
            r#","registration_endpoint":"https://a/register","client_id_metadata_document_supported":true"#;
        let dcr = r#","registration_endpoint":"https://a/register""#;
        let a: &[PreregisteredClient] =
            &[preregistered(None, "any"), preregistered(Some("https://a"), "pre")];
        let other: &[PreregisteredClient] = &[preregistered(Some("https://b"), "other")];
        let table = [
            (a, both, "pre"),
            (&a[..1], both, "any"),
            (other, both, "https://c.example/client.json"),
            (other, dcr, "register https://a/register"),
            (other, "", "unavailable"),
        ];
        for (preregistered, extra, expected) in table {
            let sources = ClientSources {
                preregistered,
                document: Some(&document),
                dynamic: &[],
                redirect_uri: Some(REDIRECT),
            };
            let choice = match sources.choose(&server("https://a", extra), SystemTime::UNIX_EPOCH) {
                ClientChoice::Use(client) => client.client_id,
                ClientChoice::Register(endpoint) => format!("register {endpoint}"),
                ClientChoice::Unavailable => "unavailable".to_owned(),
            };
            assert_eq!(choice, expected);
        }
    }

    #[test]
    fn dynamic_registrations_are_reused_only_where_they_are_valid() {
        let server = server("https://a", r#","registration_endpoint":"https://a/register""#);
        let mut expired = dynamic("https://a", REDIRECT);
        expired.secret_expires_at = Some(SystemTime::UNIX_EPOCH);
        let table = [
            (dynamic("https://a", REDIRECT), true),
            (dynamic("https://a/", REDIRECT), false),
            (dynamic("https://b", REDIRECT), false),
            (dynamic("https://a", "http://localhost:3001/callback"), false),
            (expired, false),
        ];
        for (client, is_used) in table {
            let sources = ClientSources {
                preregistered: &[],
                document: None,
                dynamic: std::slice::from_ref(&client),
                redirect_uri: Some(REDIRECT),
            };
            let choice = sources.choose(&server, SystemTime::UNIX_EPOCH);
            assert_eq!(matches!(choice, ClientChoice::Use(_)), is_used, "{client:?}");
        }
    }

    #[test]
    fn registration_requests_have_type_grants_and_a_supported_method() {
        let methods = |list: &str| format!(r#","token_endpoint_auth_methods_supported":{list}"#);
        let table = [
            (String::new(), REDIRECT, "none", "native", 2),
            (methods(r#"["client_secret_basic"]"#), REDIRECT, "client_secret_basic", "native", 2),
            (methods(r#"["client_secret_post"]"#), "https://h/cb", "client_secret_post", "web", 2),
            (methods(r#"["client_secret_post","none"]"#), "app:/cb", "none", "native", 2),
            (r#","grant_types_supported":["authorization_code"]"#.to_owned(), REDIRECT, "none", "native", 1),
        ];
        for (extra, redirect, method, kind, grants) in table {
            let server = server("https://a", &extra);
            let request = registration_request(&server, "https://a/register", "n", redirect).unwrap();
            let body: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
            assert_eq!(body["token_endpoint_auth_method"], method);
            assert_eq!(body["application_type"], kind, "{redirect}");
            assert_eq!(body["grant_types"].as_array().unwrap().len(), grants);
            assert_eq!(body["redirect_uris"][0], redirect);
        }
    }

    #[test]
    fn registration_responses_are_read_with_their_method_and_expiry() {
        let server =
            server("https://a", r#","token_endpoint_auth_methods_supported":["client_secret_post"]"#);
        let read = |status: u16, body: &str| {
            let response = Response::builder().status(status).body(Bytes::from(body.to_owned())).unwrap();
            read_registration(&response, &server, REDIRECT)
        };
        let client =
            read(201, r#"{"client_id":"i","client_secret":"sentinel","client_secret_expires_at":9}"#)
                .unwrap();
        assert_eq!(client.auth_method, TokenAuthMethod::ClientSecretPost);
        assert_eq!(client.secret_expires_at, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(9)));
        assert!(!format!("{client:?}").contains("sentinel"));
        let basic =
            r#"{"client_id":"i","client_secret":"s","token_endpoint_auth_method":"client_secret_basic"}"#;
        assert_eq!(read(200, basic).unwrap().auth_method, TokenAuthMethod::ClientSecretBasic);
        let none = r#"{"client_id":"i","token_endpoint_auth_method":"client_secret_basic"}"#;
        assert_eq!(read(201, none).unwrap().auth_method, TokenAuthMethod::None);
        let refused = read(400, r#"{"error":"invalid_redirect_uri"}"#).unwrap_err();
        assert_eq!(refused, RegistrationError::Refused(OauthError::new("invalid_redirect_uri", None)));
        assert_eq!(read(403, "no").unwrap_err(), RegistrationError::Status(StatusCode::FORBIDDEN));
        assert!(matches!(read(201, "{}").unwrap_err(), RegistrationError::Document(_)));
    }
}
