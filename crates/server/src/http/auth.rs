use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::request::Parts;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use trunkline_session::Principal;

use crate::secret_file;

/// Authenticates requests: decides which principal a request belongs to.
pub trait Authenticator: Send + Sync + fmt::Debug + 'static {
    /// Returns the principal of a request.
    ///
    /// # Errors
    /// The challenge for a request without an acceptable credential.
    fn authenticate(&self, request: &Parts) -> Result<Principal, AuthChallenge>;

    /// Returns the principal of every request, if there is one for all of them: then none is authenticated.
    fn fixed_principal(&self) -> Option<Principal> {
        None
    }
}

/// The challenge in a `401` response, for a request without an acceptable credential.
#[derive(Clone, Debug)]
pub struct AuthChallenge {
    /// The value of the `WWW-Authenticate` header.
    pub header: String,
}

/// Accepts every request as anonymous: the default on the loopback.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnonymousAuthenticator;

impl Authenticator for AnonymousAuthenticator {
    fn authenticate(&self, _request: &Parts) -> Result<Principal, AuthChallenge> {
        Ok(Principal::Anonymous)
    }

    fn fixed_principal(&self) -> Option<Principal> {
        Some(Principal::Anonymous)
    }
}

/// Accepts requests with one of a fixed set of bearer tokens.
///
/// Only hashes are kept, and every hash is compared in constant time.
#[derive(Clone)]
pub struct BearerTokens {
    tokens: Arc<[(Principal, [u8; 32])]>,
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
    /// The file can be read by other users.
    #[error("token file {0} can be read by others; make it private with `chmod 600`")]
    Exposed(PathBuf),
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
        let hashed = tokens.into_iter().map(|(name, token)| {
            (Principal::Named(name.as_ref().into()), Sha256::digest(token.as_ref().as_bytes()).into())
        });
        Self { tokens: hashed.collect() }
    }

    /// Reads the set from a file with one `NAME TOKEN` a line; empty lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// The file is unreadable, readable by others, malformed or empty.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, BearerTokensError> {
        let path = path.as_ref();
        let unreadable = |cause| BearerTokensError::Unreadable { path: path.to_owned(), cause };
        if secret_file::is_exposed(path).map_err(unreadable)? {
            return Err(BearerTokensError::Exposed(path.to_owned()));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let mut tokens = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once(char::is_whitespace).map(|(name, token)| (name, token.trim())) {
                Some((name, token)) if token.len() >= 16 && !token.contains(char::is_whitespace) => {
                    tokens.push((name, token));
                }
                _ => return Err(BearerTokensError::Malformed { path: path.to_owned(), line: at + 1 }),
            }
        }
        if tokens.is_empty() {
            return Err(BearerTokensError::Empty(path.to_owned()));
        }
        Ok(Self::new(tokens))
    }

    fn find(&self, token: &[u8]) -> Option<Principal> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        // Every hash is compared, so that the time does not reveal which one matched.
        let mut found = None;
        for (principal, known) in self.tokens.iter() {
            if bool::from(known.ct_eq(&hash)) {
                found = Some(principal);
            }
        }
        found.cloned()
    }
}

impl fmt::Debug for BearerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BearerTokens({} tokens)", self.tokens.len())
    }
}

impl Authenticator for BearerTokens {
    fn authenticate(&self, request: &Parts) -> Result<Principal, AuthChallenge> {
        let mut values = request.headers.get_all(AUTHORIZATION).iter();
        let token = match (values.next(), values.next()) {
            (Some(value), None) => bearer(value.as_bytes()),
            _ => None,
        };
        match token {
            None => Err(AuthChallenge { header: "Bearer".to_owned() }),
            Some(token) => self
                .find(token)
                .ok_or_else(|| AuthChallenge { header: "Bearer error=\"invalid_token\"".to_owned() }),
        }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(authorization: &[&str]) -> Parts {
        let mut request = http::Request::builder();
        for value in authorization {
            request = request.header(AUTHORIZATION, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn bearer_token_authenticates_its_principal() {
        let tokens = BearerTokens::new([("ann", "ann-secret-token"), ("bob", "bob-secret-token")]);
        let who = |authorization: &[&str]| tokens.authenticate(&parts(authorization)).ok();
        assert_eq!(who(&["Bearer ann-secret-token"]), Some(Principal::Named("ann".into())));
        assert_eq!(who(&["bearer  bob-secret-token "]), Some(Principal::Named("bob".into())));
        for refused in [
            &["Bearer ann-secret-toke"][..],
            &["Bearer ann-secret-token2"],
            &["Basic ann-secret-token"],
            &["ann-secret-token"],
            &["Bearer "],
            &["Bearer ann-secret-token", "Bearer bob-secret-token"],
            &[],
        ] {
            assert_eq!(who(refused), None, "{refused:?}");
        }
        assert!(!format!("{tokens:?}").contains("secret"));
    }
}
