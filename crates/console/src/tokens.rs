use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// The bytes of a token: it cannot be guessed, and a link with it fits on a line of a terminal.
const TOKEN_BYTES: usize = 24;

/// The digest of a token. Tokens are kept and compared as digests, so that neither a dump nor the time of a comparison
/// reveals one.
pub(crate) type SecretDigest = [u8; 32];

/// Makes a token; `None` if the system has no random numbers.
pub(crate) fn random_token() -> Option<String> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

pub(crate) fn token_digest(token: &str) -> SecretDigest {
    Sha256::digest(token.as_bytes()).into()
}
