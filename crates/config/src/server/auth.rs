use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::location::ServerLocation;
use super::options::RemoteTransport;
use crate::text::ConfigText;

/// How the hub gets the tokens that a server demands. Debug output has no secrets in it.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServerAuth {
    /// How tokens are obtained.
    #[serde(rename = "type")]
    pub kind: AuthKind,
    /// The identifier of a client that is registered at the authorization server.
    pub client_id: Option<ConfigText>,
    /// The URL of a client metadata document that describes the hub, for authorization servers that support them.
    pub client_document: Option<ConfigText>,
    /// The secret of the client.
    pub client_secret: Option<ConfigText>,
    /// The file of the client's private key (PEM, PKCS#8), for `private_key_jwt`.
    pub private_key: Option<ConfigText>,
    /// Scopes to request in addition to those that the server names.
    pub scopes: Vec<String>,
    /// The only issuer of tokens that are used.
    pub issuer: Option<ConfigText>,
    /// Whether tokens are bound to a key.
    pub dpop: DpopUse,
    /// The file of the JWT of a workload, or of the ID token of an enterprise; it is read at each use.
    pub token_file: Option<ConfigText>,
    /// The token endpoint of the identity provider of an enterprise.
    pub idp_token_endpoint: Option<ConfigText>,
    /// The identifier of the client at the identity provider.
    pub idp_client_id: Option<ConfigText>,
    /// Its secret there.
    pub idp_client_secret: Option<ConfigText>,
    /// The token endpoint at which the access token of a caller is exchanged.
    pub token_endpoint: Option<ConfigText>,
    /// The name of the server at that token endpoint, beside its URL.
    pub audience: Option<ConfigText>,
    /// The folder of the configuration file, the base of relative paths.
    #[serde(skip)]
    pub(crate) base: PathBuf,
}

/// How tokens for a server are obtained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuthKind {
    /// Each user logs in, as soon as the server demands a token. The default.
    #[default]
    Auto,
    /// Not at all: a server that demands a token is unavailable.
    None,
    /// Each user logs in at the server's authorization server and has connections and lists of their own.
    User,
    /// The hub has credentials of its own, which all users share.
    ClientCredentials,
    /// A platform issues a JWT for the hub (JWT bearer grant, RFC 7523); all users share it.
    WorkloadIdentity,
    /// The identity provider of an enterprise issues an ID-JAG for the user of an ID token; all users share it.
    Enterprise,
    /// The access token with which the caller reaches the hub is exchanged for one of the server (RFC 8693). Each user
    /// has connections and lists of their own.
    TokenExchange,
}

impl AuthKind {
    /// Returns the value in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::User => "user",
            Self::ClientCredentials => "client-credentials",
            Self::WorkloadIdentity => "workload-identity",
            Self::Enterprise => "enterprise",
            Self::TokenExchange => "token-exchange",
        }
    }
}

/// Whether tokens are bound to a key by DPoP (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DpopUse {
    /// If the server and its authorization server both announce it. The default.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Always; a token that is not bound is refused.
    Required,
}

impl DpopUse {
    /// Returns the value in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
            Self::Required => "required",
        }
    }
}

impl ServerAuth {
    /// Returns the path of a file, relative to the folder of the configuration.
    pub fn path_of(&self, file: &ConfigText) -> PathBuf {
        self.base.join(Path::new(file.expose()))
    }

    /// Sets the folder of the configuration file, if it matters.
    pub(crate) fn within(self, base: &Path) -> Self {
        match self.private_key.is_some() || self.token_file.is_some() {
            true => Self { base: base.to_owned(), ..self },
            false => self,
        }
    }

    /// Leaves out the files, since their paths depend on the folder of the configuration file.
    pub(crate) fn without_files(&self) -> Self {
        Self { private_key: None, token_file: None, base: PathBuf::new(), ..self.clone() }
    }

    /// Returns the texts with the keys that they have in a file.
    pub fn texts(&self) -> [(&'static str, Option<&ConfigText>); 11] {
        [
            ("client_id", self.client_id.as_ref()),
            ("client_document", self.client_document.as_ref()),
            ("client_secret", self.client_secret.as_ref()),
            ("private_key", self.private_key.as_ref()),
            ("issuer", self.issuer.as_ref()),
            ("token_file", self.token_file.as_ref()),
            ("idp_token_endpoint", self.idp_token_endpoint.as_ref()),
            ("idp_client_id", self.idp_client_id.as_ref()),
            ("idp_client_secret", self.idp_client_secret.as_ref()),
            ("token_endpoint", self.token_endpoint.as_ref()),
            ("audience", self.audience.as_ref()),
        ]
    }

    /// Returns a key that is missing or has no meaning for the way in which tokens are obtained, and what is wrong.
    pub(crate) fn find_invalid_key(&self) -> Option<(&'static str, String)> {
        let (required, allowed): (&[&str], &[&str]) = match self.kind {
            AuthKind::Auto | AuthKind::User => {
                (&[], &["client_id", "client_document", "client_secret", "private_key", "issuer"])
            }
            AuthKind::None => (&[], &[]),
            AuthKind::ClientCredentials => (&["client_id"], &["client_secret", "private_key", "issuer"]),
            AuthKind::WorkloadIdentity => {
                (&["token_file"], &["client_id", "client_secret", "private_key", "issuer"])
            }
            AuthKind::Enterprise => (
                &["client_id", "token_file", "idp_token_endpoint", "idp_client_id"],
                &["client_secret", "private_key", "idp_client_secret", "issuer"],
            ),
            AuthKind::TokenExchange => {
                (&["client_id", "token_endpoint"], &["client_secret", "private_key", "audience", "issuer"])
            }
        };
        let kind = self.kind.as_str();
        for (key, text) in self.texts() {
            if text.is_none() && required.contains(&key) {
                return Some(("", format!("`type = \"{kind}\"` needs `{key}`")));
            }
            if text.is_some() && !required.contains(&key) && !allowed.contains(&key) {
                return Some((key, format!("it has no meaning for `type = \"{kind}\"`")));
            }
        }
        if self.kind == AuthKind::TokenExchange && self.dpop == DpopUse::Required {
            return Some(("dpop", "exchanged tokens are not bound to a key".to_owned()));
        }
        let has_credential = self.client_secret.is_some() || self.private_key.is_some();
        if self.kind == AuthKind::ClientCredentials && !has_credential {
            let what = "`type = \"client-credentials\"` needs `client_secret` or `private_key`";
            return Some(("", what.to_owned()));
        }
        if self.client_secret.is_some() && self.private_key.is_some() {
            return Some((
                "private_key",
                "there is a `client_secret` as well; a client has either".to_owned(),
            ));
        }
        let is_document = |text: &ConfigText| {
            let path = text.expose().strip_prefix("https://").and_then(|rest| rest.split_once('/'));
            path.is_some_and(|(host, path)| !host.is_empty() && !path.is_empty())
        };
        if self.client_document.as_ref().is_some_and(|text| !is_document(text)) {
            return Some(("client_document", "it has to be an https URL with a path".to_owned()));
        }
        // A document can name the public key of a client; a secret belongs to one authorization server.
        let has_client = match self.client_secret {
            Some(_) => self.client_id.is_some(),
            None => self.client_id.is_some() || self.client_document.is_some(),
        };
        let lacks_client = has_credential && !has_client;
        lacks_client.then(|| ("", "`client_secret` and `private_key` need `client_id`".to_owned()))
    }
}

impl ServerAuth {
    /// Returns the key of a transport over which tokens cannot be obtained in this way, and why.
    pub(crate) fn find_unsuitable_transport(
        &self,
        location: &ServerLocation,
    ) -> Option<(&'static str, &'static str)> {
        let ServerLocation::Endpoint(endpoint) = location else { return None };
        if self.kind != AuthKind::TokenExchange {
            return None;
        }
        let what = "tokens of callers are exchanged over Streamable HTTP only: other transports are authorized once for all \
                    calls";
        let is_websocket = endpoint.is_websocket();
        let is_sse = endpoint.transport == RemoteTransport::Sse;
        is_websocket.then_some(("url", what)).or_else(|| is_sse.then_some(("transport", what)))
    }
}

impl fmt::Debug for ServerAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAuth")
            .field("kind", &self.kind)
            .field("scopes", &self.scopes.len())
            .field("dpop", &self.dpop)
            .finish_non_exhaustive()
    }
}
