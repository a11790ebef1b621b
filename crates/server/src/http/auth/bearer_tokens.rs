use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use http::request::Parts;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use trunkline_session::{Principal, SecretExposure, secret_file_exposure};

use super::header::{TokenScheme, read_token};
use super::{AuthRefusal, Authenticated, AuthenticationResult, Authenticator, bearer_token};
use crate::access_grant::AccessGrant;
use crate::revocation::Revocation;

/// Accepts requests with one of a set of bearer tokens, which can be replaced while the server runs.
///
/// Only hashes are kept, and every hash is compared in constant time. Clones share one set.
#[derive(Clone)]
pub struct BearerTokens {
    tokens: Arc<ArcSwap<Vec<Arc<BearerTokenEntry>>>>,
}

/// One token. Removing it from the set revokes it: streams and calls that were begun with it end.
struct BearerTokenEntry {
    principal: Principal,
    hash: [u8; 32],
    grant: Arc<AccessGrant>,
    revocation: Revocation,
}

/// How a set of tokens has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenChanges {
    /// How many tokens are new.
    pub added: usize,
    /// How many tokens were removed, and so revoked.
    pub removed: usize,
}

/// Why a token file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BearerTokensError {
    /// The file cannot be read.
    #[error("token file {path} cannot be read: {cause}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: io::Error,
    },
    /// Other users can get at the secret in the file.
    #[error("token file {} {exposure}", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// How they can.
        exposure: SecretExposure,
    },
    /// A line is not a name and a token.
    #[error("line {line} of token file {path} is not `NAME TOKEN`, with a token of at least 16 characters")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// There is no token in the file.
    #[error("token file {0} holds no token; write one `NAME TOKEN` a line")]
    Empty(PathBuf),
}

impl BearerTokens {
    /// Makes the set from names and tokens.
    pub fn new<N: AsRef<str>, T: AsRef<str>>(tokens: impl IntoIterator<Item = (N, T)>) -> Self {
        let tokens = tokens.into_iter();
        Self::from_entries(
            tokens.map(|(name, token)| BearerTokenEntry::new(name.as_ref(), token.as_ref(), &[])),
        )
    }

    fn from_entries(entries: impl IntoIterator<Item = BearerTokenEntry>) -> Self {
        let entries: Vec<_> = entries.into_iter().map(Arc::new).collect();
        Self { tokens: Arc::new(ArcSwap::from_pointee(entries)) }
    }

    /// Reads the set from a file with one `NAME TOKEN` a line, and any scopes of the token after it; empty lines and
    /// lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// The file is unreadable, readable by others, malformed or empty.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, BearerTokensError> {
        let path = path.as_ref();
        let unreadable = |cause| BearerTokensError::Unreadable { path: path.to_owned(), cause };
        if let Some(exposure) = secret_file_exposure(path).map_err(unreadable)? {
            return Err(BearerTokensError::Exposed { path: path.to_owned(), exposure });
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let mut entries = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let Some(name) = words.next().filter(|name| !name.starts_with('#')) else { continue };
            match words.next() {
                Some(token) if token.len() >= 16 => {
                    entries.push(BearerTokenEntry::new(name, token, &words.collect::<Vec<_>>()));
                }
                _ => return Err(BearerTokensError::Malformed { path: path.to_owned(), line: at + 1 }),
            }
        }
        if entries.is_empty() {
            return Err(BearerTokensError::Empty(path.to_owned()));
        }
        Ok(Self::from_entries(entries))
    }

    /// Reads a file again and replaces the set by what it has; see [`BearerTokens::replace`].
    ///
    /// # Errors
    /// As [`BearerTokens::from_file`]; the set is unchanged then.
    pub fn reload(&self, path: impl AsRef<Path>) -> Result<TokenChanges, BearerTokensError> {
        Ok(self.replace(&Self::from_file(path)?))
    }

    /// Replaces the set by another. Tokens that are not in it are revoked: what was opened with them ends. Tokens in both
    /// under the same name with the same scopes stay valid without interruption.
    pub fn replace(&self, other: &Self) -> TokenChanges {
        let (before, wanted) = (self.tokens.load_full(), other.tokens.load_full());
        let mut changes = TokenChanges::default();
        let after = wanted.iter().map(|entry| {
            let kept = before.iter().find(|known| known.is_same(entry));
            changes.added += usize::from(kept.is_none());
            kept.unwrap_or(entry).clone()
        });
        self.tokens.store(Arc::new(after.collect()));
        // Revoked explicitly: a request that is being authenticated may still hold the previous set.
        for removed in before.iter().filter(|known| !wanted.iter().any(|entry| known.is_same(entry))) {
            removed.revocation.revoke();
            changes.removed += 1;
        }
        changes
    }

    pub(in crate::http) fn find(&self, token: &[u8]) -> Option<Authenticated> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        // Every hash is compared, so that the time does not reveal which one matched.
        let tokens = self.tokens.load();
        let mut found = None;
        for entry in tokens.iter() {
            if bool::from(entry.hash.ct_eq(&hash)) {
                found = Some(entry);
            }
        }
        found.map(|entry| Authenticated::new(entry.principal.clone()).with_grant(entry.grant.clone()))
    }
}

impl BearerTokenEntry {
    fn new(name: &str, token: &str, scopes: &[&str]) -> Self {
        let revocation = Revocation::new();
        let grant = AccessGrant::new().with_scopes(scopes.iter().copied()).revoked_by(revocation.signal());
        let hash = Sha256::digest(token.as_bytes()).into();
        Self { principal: Principal::Named(name.into()), hash, grant: Arc::new(grant), revocation }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.principal == other.principal
            && self.hash == other.hash
            && self.grant.scopes == other.grant.scopes
    }
}

impl fmt::Debug for BearerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BearerTokens({} tokens)", self.tokens.load().len())
    }
}

impl Authenticator for BearerTokens {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> AuthenticationResult<'a> {
        AuthenticationResult::Ready(match bearer_token(request) {
            Ok(Some(token)) => {
                self.find(token).ok_or_else(|| AuthRefusal::invalid_token("the token is not known"))
            }
            Ok(None) => Err(AuthRefusal::missing_token()),
            Err(refusal) => Err(refusal),
        })
    }

    fn recognize(&self, authorization: &[u8]) -> Option<Authenticated> {
        let presented = read_token(authorization)??;
        (presented.scheme == TokenScheme::Bearer).then(|| self.find(presented.token))?
    }
}

#[cfg(test)]
mod tests {
    use http::header::AUTHORIZATION;

    use super::*;
    use crate::testing::TestFolder;

    fn authenticate(tokens: &BearerTokens, authorization: &[&str]) -> Result<Authenticated, u16> {
        let mut request = http::Request::builder();
        for value in authorization {
            request = request.header(AUTHORIZATION, *value);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        match tokens.authenticate(&parts) {
            AuthenticationResult::Ready(result) => result.map_err(|refusal| refusal.status().as_u16()),
            AuthenticationResult::Pending(_) => panic!("a static token is checked at once"),
        }
    }

    #[test]
    fn bearer_token_authenticates_its_principal() {
        let tokens = BearerTokens::new([("ann", "ann-secret-token"), ("bob", "bob-secret-token")]);
        for (authorization, expected) in [
            (&["Bearer ann-secret-token"][..], Ok("ann")),
            (&["bearer  bob-secret-token "], Ok("bob")),
            (&["Bearer ann-secret-toke"], Err(401)),
            (&["Bearer ann-secret-token2"], Err(401)),
            (&["Basic ann-secret-token"], Err(401)),
            (&["ann-secret-token"], Err(401)),
            (&["Bearer "], Err(400)),
            (&["Bearer ann-secret-token", "Bearer bob-secret-token"], Err(400)),
            (&[], Err(401)),
        ] {
            let found = authenticate(&tokens, authorization).map(|sender| sender.principal);
            assert_eq!(found, expected.map(|name| Principal::Named(name.into())), "{authorization:?}");
        }
        assert!(!format!("{tokens:?}").contains("secret"));
    }

    #[test]
    fn replaced_tokens_are_revoked_and_kept_tokens_are_not() {
        let tokens = BearerTokens::new([("ann", "old-secret-token"), ("bob", "bob-secret-token")]);
        let signal = |token: &str| {
            let sender = authenticate(&tokens, &[&format!("Bearer {token}")]).unwrap();
            sender.grant.unwrap().revocation.clone().unwrap()
        };
        let (old, bob) = (signal("old-secret-token"), signal("bob-secret-token"));
        let rotated = BearerTokens::new([("bob", "bob-secret-token"), ("ann", "new-secret-token")]);
        assert_eq!(tokens.replace(&rotated), TokenChanges { added: 1, removed: 1 });
        drop(rotated);
        assert!(old.is_revoked() && !bob.is_revoked());
        assert!(!signal("new-secret-token").is_revoked() && !signal("bob-secret-token").is_revoked());
        assert_eq!(authenticate(&tokens, &["Bearer old-secret-token"]).err(), Some(401));
        // The same secret under another name is another credential.
        tokens.replace(&BearerTokens::new([("eve", "bob-secret-token")]));
        assert!(bob.is_revoked());
    }

    #[test]
    fn token_file_that_cannot_be_used_leaves_the_set_unchanged() {
        let folder = TestFolder::new("tokens");
        let path = folder.path().join("tokens");
        let write = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        };
        write("# who may call\n\nann ann-secret-token files:read files:write\n", 0o600);
        let tokens = BearerTokens::from_file(&path).unwrap();
        let ann = authenticate(&tokens, &["Bearer ann-secret-token"]).unwrap().grant.unwrap();
        assert!(ann.has_scope("files:write") && !ann.has_scope("files"));
        for (text, mode) in [("", 0o600), ("ann short", 0o600), ("ann ann-secret-token", 0o644)] {
            write(text, mode);
            assert!(tokens.reload(&path).is_err(), "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(tokens.reload(&path).is_err());
        assert!(authenticate(&tokens, &["Bearer ann-secret-token"]).is_ok());
        assert!(!ann.revocation.as_ref().unwrap().is_revoked());
        write("ann ann-secret-token files:write files:read", 0o600);
        assert_eq!(tokens.reload(&path).unwrap(), TokenChanges { added: 1, removed: 1 });
        assert!(ann.revocation.as_ref().unwrap().is_revoked(), "with other scopes it is another grant");
    }
}
