use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use trunkline_config::ConfigText;

/// The table `[auth]`: the access tokens that clients need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(in crate::commands::serve) struct AuthTable {
    /// The URL by which clients reach the MCP endpoint; `--public-url` overrides it.
    pub(super) public_url: Option<String>,
    /// A file of static tokens, with `NAME TOKEN` on each line, relative to the folder of this file.
    pub(super) tokens: Option<PathBuf>,
    /// The scopes that every access token must have.
    pub(super) required_scopes: Vec<String>,
    /// Further scopes that clients may request.
    pub(super) optional_scopes: Vec<String>,
    /// The scopes that a scope includes.
    pub(super) implied_scopes: BTreeMap<String, Vec<String>>,
    /// The name of the server that clients show to their users.
    pub(super) resource_name: Option<String>,
    /// Whether access tokens may or must be bound to a key of the client (DPoP).
    pub(super) dpop: DpopSetting,
    /// Whether DPoP proofs need a nonce of this server.
    pub(super) dpop_nonce: bool,
    /// A PEM file of certificate authorities to trust for issuers, relative to the folder of this file.
    pub(super) ca: Option<PathBuf>,
    /// The trusted authorization servers; the first is offered to clients of revision 2025-03-26.
    pub(super) issuers: Vec<IssuerTable>,
}

/// Whether bound access tokens may or must be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum DpopSetting {
    Off,
    #[default]
    Accepted,
    Required,
}

/// One of `[[auth.issuers]]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct IssuerTable {
    /// The issuer identifier, exactly as its tokens have it.
    pub(super) issuer: String,
    /// The accepted audiences; by default the public URL.
    #[serde(default)]
    pub(super) audience: Vec<String>,
    /// The URL of the keys; by default that of the issuer's metadata.
    pub(super) jwks: Option<String>,
    /// How opaque tokens are checked; without it, tokens must be JWTs.
    pub(super) introspection: Option<IntrospectionTable>,
    /// The accepted signature algorithms; by default all asymmetric ones.
    #[serde(default)]
    pub(super) algorithms: Vec<String>,
    /// Whether JWTs must have the type `at+jwt`.
    #[serde(default)]
    pub(super) typ: TypSetting,
    /// A web client of the hub at the issuer, with which users sign in to open connect pages.
    pub(super) connect_client_id: Option<String>,
    /// Its secret; use a variable.
    pub(super) connect_client_secret: Option<ConfigText>,
}

/// The type that JWTs must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum TypSetting {
    /// Only `at+jwt` (RFC 9068).
    #[default]
    #[serde(rename = "at+jwt")]
    AtJwt,
    /// Also `JWT` or none, for issuers from before RFC 9068.
    #[serde(rename = "any")]
    Any,
}

/// How tokens are introspected (RFC 7662).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct IntrospectionTable {
    /// The endpoint; by default that of the issuer's metadata.
    pub(super) endpoint: Option<String>,
    /// The client identifier of this server at the issuer.
    pub(super) client_id: String,
    /// Its secret; use a variable.
    pub(super) client_secret: ConfigText,
    /// How the secret is sent.
    #[serde(default)]
    pub(super) method: SecretMethod,
}

/// How a client secret is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum SecretMethod {
    #[default]
    Basic,
    Post,
}
