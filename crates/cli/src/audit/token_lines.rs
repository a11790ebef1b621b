//! Lines about the tokens with which a hub reaches its servers.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use jiff::Timestamp;
use serde::Serialize;
use trunkline_client::authorization::{
    ClientRegistration, StoreFuture, StoredTokens, TokenGeneration, TokenKey, TokenLock, TokenSet,
    TokenStore, TokenStoreError,
};
use trunkline_server::protocol::shorten;
use trunkline_server::transport::Url;

use super::AuditLog;
use super::credential::fingerprint;
use super::record::timestamp;

/// The audit log of a hub, which is opened after the hub was made.
pub(crate) type AuditSlot = Arc<OnceLock<AuditLog>>;

/// A token store that writes its changes to the audit log. Every token is stored before it is used, so that none is missing.
pub(crate) struct AuditedTokenStore {
    store: Arc<dyn TokenStore>,
    audit: AuditSlot,
}

/// What became of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum TokenEvent {
    /// There were none before.
    #[serde(rename = "token_issued")]
    Issued,
    /// They are in the place of others, after a refresh or a further login.
    #[serde(rename = "token_renewed")]
    Renewed,
    /// The authorization server refuses to refresh them.
    #[serde(rename = "token_ended")]
    Ended,
    /// They were removed, by a logout or an operator.
    #[serde(rename = "token_removed")]
    Removed,
}

/// A line, in the order in which it is written.
#[derive(Debug, Serialize)]
struct TokenLine<'a> {
    time: String,
    event: TokenEvent,
    account: String,
    /// The origin of the server.
    server_url: String,
    issuer: String,
    oauth_client: String,
    /// Those that are stored from now on, if any are.
    #[serde(flatten)]
    tokens: Option<WrittenTokens<'a>>,
}

#[derive(Debug, Serialize)]
struct WrittenTokens<'a> {
    credential: &'a str,
    scopes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

impl AuditedTokenStore {
    pub(crate) fn new(store: Arc<dyn TokenStore>, audit: AuditSlot) -> Self {
        Self { store, audit }
    }

    async fn save_and_write(
        &self,
        key: &TokenKey,
        tokens: &TokenSet,
        replaced: TokenGeneration,
    ) -> Result<TokenGeneration, TokenStoreError> {
        let Some(audit) = self.audit.get() else { return self.store.save(key, tokens, replaced).await };
        // A failure to read must not keep new tokens from being stored.
        let before = self.store.load(key).await.ok().flatten().map(|stored| stored.tokens);
        let saved = self.store.save(key, tokens, replaced).await?;
        write(audit, TokenEvent::of_save(before.as_ref(), tokens), key, Some(tokens));
        Ok(saved)
    }
}

impl TokenEvent {
    fn of_save(before: Option<&TokenSet>, after: &TokenSet) -> Self {
        match before {
            None => Self::Issued,
            // The refresh token alone is gone.
            Some(before) if before.access_token == after.access_token => Self::Ended,
            Some(_) => Self::Renewed,
        }
    }
}

impl AuditLog {
    /// Writes that an operator has ended the logins of a user, at one server or at all. Their tokens may have been removed by
    /// another process.
    pub(crate) fn write_ended_logins(&self, account: &str, server: Option<&str>) {
        let (account, server) = (shorten(account), server.map(shorten));
        self.write_line(&EndedLoginsLine { time: timestamp(), event: "logins_ended", account, server });
    }
}

/// A line about all tokens of a user.
#[derive(Debug, Serialize)]
struct EndedLoginsLine {
    time: String,
    event: &'static str,
    account: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
}

/// Writes a line.
fn write(audit: &AuditLog, event: TokenEvent, key: &TokenKey, tokens: Option<&TokenSet>) {
    let credential = tokens.map(|tokens| fingerprint(&tokens.access_token));
    let written = tokens.zip(credential.as_deref()).map(|(tokens, credential)| WrittenTokens {
        credential,
        scopes: shorten(&tokens.granted.to_string()),
        expires: tokens.expires_at.and_then(shown_time),
    });
    let line = TokenLine {
        time: timestamp(),
        event,
        account: shorten(&key.principal),
        server_url: shown_origin(&key.server_url),
        issuer: shorten(&key.issuer),
        oauth_client: shorten(&key.client_id),
        tokens: written,
    };
    audit.write_line(&line);
}

/// Returns the origin of a URL: its path and query may have values of variables, which are often secrets.
fn shown_origin(url: &str) -> String {
    url.parse::<Url>().map_or_else(|_| String::new(), |url| shorten(&url.origin()))
}

fn shown_time(time: SystemTime) -> Option<String> {
    Timestamp::try_from(time).ok().map(|time| format!("{time:.0}"))
}

impl TokenStore for AuditedTokenStore {
    fn lock<'a>(&'a self, key: &'a TokenKey) -> StoreFuture<'a, TokenLock> {
        self.store.lock(key)
    }

    fn load<'a>(&'a self, key: &'a TokenKey) -> StoreFuture<'a, Option<StoredTokens>> {
        self.store.load(key)
    }

    fn save<'a>(
        &'a self,
        key: &'a TokenKey,
        tokens: &'a TokenSet,
        replaced: TokenGeneration,
    ) -> StoreFuture<'a, TokenGeneration> {
        Box::pin(self.save_and_write(key, tokens, replaced))
    }

    fn remove<'a>(&'a self, key: &'a TokenKey, generation: TokenGeneration) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.store.remove(key, generation).await?;
            if let Some(audit) = self.audit.get() {
                write(audit, TokenEvent::Removed, key, None);
            }
            Ok(())
        })
    }

    fn list<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, Vec<TokenKey>> {
        self.store.list(principal)
    }

    fn list_all(&self) -> StoreFuture<'_, Vec<TokenKey>> {
        self.store.list_all()
    }

    fn load_clients(&self) -> StoreFuture<'_, Vec<ClientRegistration>> {
        self.store.load_clients()
    }

    fn save_client<'a>(&'a self, client: &'a ClientRegistration) -> StoreFuture<'a, ()> {
        self.store.save_client(client)
    }

    fn remove_client<'a>(&'a self, issuer: &'a str, client_id: &'a str) -> StoreFuture<'a, ()> {
        self.store.remove_client(issuer, client_id)
    }
}
