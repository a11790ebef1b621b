//! The content of the file, as JSON.

use std::borrow::Cow;
use std::io;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use trunkline_transport::Secret;
use zeroize::Zeroizing;

use super::super::entries::TokenEntries;
use super::super::{StoredTokens, TokenGeneration, TokenKey};
use crate::registration::{ClientCredential, ClientRegistration, RegistrationSource};
use crate::scopes::ScopeSet;
use crate::token_request::TokenAuthMethod;
use crate::token_set::{AccessTokenKind, TokenContext, TokenSet};

/// A text that is borrowed when it is written, and owned when it is read, so that no further copies of secrets are made.
type Text<'a> = Cow<'a, str>;

#[derive(Serialize, Deserialize)]
pub(super) struct StoredContent<'a> {
    last_generation: u64,
    tokens: Vec<StoredEntry<'a>>,
    clients: Vec<StoredClient<'a>>,
}

#[derive(Serialize, Deserialize)]
struct StoredEntry<'a> {
    principal: Text<'a>,
    server_url: Text<'a>,
    issuer: Text<'a>,
    client_id: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<Text<'a>>,
    generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<Text<'a>>,
    token_type: Text<'a>,
    access_token: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dpop_key: Option<Text<'a>>,
    /// Milliseconds since 1970.
    issued_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    granted: String,
    requested: String,
    token_endpoint: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revocation_endpoint: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource: Option<Text<'a>>,
}

#[derive(Serialize, Deserialize)]
struct StoredClient<'a> {
    issuer: Text<'a>,
    client_id: Text<'a>,
    source: StoredSource,
    auth_method: Text<'a>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<Text<'a>>,
    #[serde(default)]
    has_private_key: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirect_uri: Option<Text<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret_expires_at: Option<u64>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredSource {
    Preregistered,
    ClientDocument,
    Dynamic,
}

impl StoredContent<'_> {
    /// Makes the entries of a new file. Its generations begin at a random number, so that they differ from those of a file
    /// that was removed.
    pub(super) fn new_entries() -> io::Result<TokenEntries> {
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        // Other programs may read numbers as floating point.
        let last = TokenGeneration::new(u64::from_le_bytes(number) >> 16);
        Ok(TokenEntries { last, ..TokenEntries::default() })
    }

    /// Parses the content. The error has nothing of it.
    pub(super) fn parse(bytes: &[u8]) -> Result<TokenEntries, String> {
        let content: StoredContent<'_> = serde_json::from_slice(bytes).map_err(|error| {
            format!("the JSON is not as expected at line {}, column {}", error.line(), error.column())
        })?;
        let mut entries =
            TokenEntries { last: TokenGeneration::new(content.last_generation), ..TokenEntries::default() };
        for entry in content.tokens {
            let (key, stored) = entry.into_tokens()?;
            entries.tokens.insert(key, stored);
        }
        entries.clients =
            content.clients.into_iter().map(StoredClient::into_client).collect::<Result<_, _>>()?;
        Ok(entries)
    }

    pub(super) fn to_bytes(entries: &TokenEntries) -> serde_json::Result<Zeroizing<Vec<u8>>> {
        let mut tokens: Vec<_> = entries.tokens.iter().collect();
        tokens.sort_by_key(|(key, _)| *key);
        let content = StoredContent {
            last_generation: entries.last.number(),
            tokens: tokens.into_iter().map(StoredEntry::new).collect(),
            clients: entries.clients.iter().map(StoredClient::new).collect(),
        };
        let mut bytes = Zeroizing::new(Vec::with_capacity(4096));
        serde_json::to_writer(&mut *bytes, &content)?;
        Ok(bytes)
    }
}

impl<'a> StoredEntry<'a> {
    fn new((key, stored): (&'a TokenKey, &'a StoredTokens)) -> Self {
        let StoredTokens { tokens, generation } = stored;
        Self {
            principal: Cow::Borrowed(&key.principal),
            server_url: Cow::Borrowed(&key.server_url),
            issuer: Cow::Borrowed(&key.issuer),
            client_id: Cow::Borrowed(&key.client_id),
            account: borrowed(&key.account),
            generation: generation.number(),
            user: borrowed(&tokens.user),
            token_type: Cow::Borrowed(tokens.kind.scheme()),
            access_token: Cow::Borrowed(tokens.access_token.expose()),
            refresh_token: exposed(&tokens.refresh_token),
            dpop_key: exposed(&tokens.dpop_key),
            issued_at: milliseconds(tokens.issued_at),
            expires_at: tokens.expires_at.map(milliseconds),
            granted: tokens.granted.to_string(),
            requested: tokens.context.requested.to_string(),
            token_endpoint: Cow::Borrowed(&tokens.context.token_endpoint),
            revocation_endpoint: borrowed(&tokens.context.revocation_endpoint),
            resource: borrowed(&tokens.context.resource),
        }
    }

    fn into_tokens(self) -> Result<(TokenKey, StoredTokens), String> {
        let context = TokenContext {
            issuer: self.issuer.clone().into_owned(),
            token_endpoint: self.token_endpoint.into_owned(),
            revocation_endpoint: self.revocation_endpoint.map(Cow::into_owned),
            client_id: self.client_id.clone().into_owned(),
            resource: self.resource.map(Cow::into_owned),
            requested: ScopeSet::parse(&self.requested),
        };
        let tokens = TokenSet {
            access_token: Secret::new(self.access_token),
            kind: AccessTokenKind::parse(&self.token_type).map_err(|error| error.to_string())?,
            refresh_token: self.refresh_token.map(Secret::new),
            issued_at: time(self.issued_at)?,
            expires_at: self.expires_at.map(time).transpose()?,
            granted: ScopeSet::parse(&self.granted),
            dpop_key: self.dpop_key.map(Secret::new),
            user: self.user.map(Cow::into_owned),
            context,
        };
        let key = TokenKey {
            principal: self.principal.into_owned(),
            server_url: self.server_url.into_owned(),
            issuer: self.issuer.into_owned(),
            client_id: self.client_id.into_owned(),
            account: self.account.map(Cow::into_owned),
        };
        Ok((key, StoredTokens { tokens, generation: TokenGeneration::new(self.generation) }))
    }
}

impl<'a> StoredClient<'a> {
    fn new(client: &'a ClientRegistration) -> Self {
        let secret = match &client.credential {
            ClientCredential::Secret(secret) => Some(Cow::Borrowed(secret.expose())),
            ClientCredential::Public | ClientCredential::PrivateKey => None,
        };
        Self {
            issuer: Cow::Borrowed(&client.issuer),
            client_id: Cow::Borrowed(&client.client_id),
            source: match client.source {
                RegistrationSource::Preregistered => StoredSource::Preregistered,
                RegistrationSource::ClientDocument => StoredSource::ClientDocument,
                RegistrationSource::Dynamic => StoredSource::Dynamic,
            },
            auth_method: Cow::Borrowed(client.auth_method.as_str()),
            secret,
            has_private_key: client.credential == ClientCredential::PrivateKey,
            redirect_uri: borrowed(&client.redirect_uri),
            secret_expires_at: client.secret_expires_at.map(milliseconds),
        }
    }

    fn into_client(self) -> Result<ClientRegistration, String> {
        let credential = match (self.secret, self.has_private_key) {
            (Some(secret), _) => ClientCredential::Secret(Secret::new(secret)),
            (None, true) => ClientCredential::PrivateKey,
            (None, false) => ClientCredential::Public,
        };
        let method = TokenAuthMethod::parse(&self.auth_method);
        Ok(ClientRegistration {
            issuer: self.issuer.into_owned(),
            client_id: self.client_id.into_owned(),
            credential,
            auth_method: method.ok_or("a client authenticates by an unknown method")?,
            source: match self.source {
                StoredSource::Preregistered => RegistrationSource::Preregistered,
                StoredSource::ClientDocument => RegistrationSource::ClientDocument,
                StoredSource::Dynamic => RegistrationSource::Dynamic,
            },
            redirect_uri: self.redirect_uri.map(Cow::into_owned),
            secret_expires_at: self.secret_expires_at.map(time).transpose()?,
        })
    }
}

fn borrowed(text: &Option<String>) -> Option<Text<'_>> {
    text.as_deref().map(Cow::Borrowed)
}

fn exposed(secret: &Option<Secret>) -> Option<Text<'_>> {
    secret.as_ref().map(|secret| Cow::Borrowed(secret.expose()))
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn time(milliseconds: u64) -> Result<SystemTime, String> {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds));
    time.ok_or_else(|| "a time is out of range".to_owned())
}
