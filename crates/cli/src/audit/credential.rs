use sha2::{Digest as _, Sha256};
use trunkline_server::AccessGrant;
use trunkline_server::protocol::shorten;
use trunkline_server::transport::Secret;

/// How many bytes of the digest of a token are written: enough to identify the token among others, too few to recover it.
const FINGERPRINT_BYTES: usize = 8;

/// The access token of a call, as far as a log may have it.
#[derive(Debug, Default)]
pub(super) struct AuditedCredential {
    pub(super) oauth_client: Option<String>,
    pub(super) fingerprint: Option<String>,
    pub(super) scopes: Option<String>,
}

impl AuditedCredential {
    pub(super) fn new(grant: Option<&AccessGrant>) -> Self {
        let Some(grant) = grant else { return Self::default() };
        let scopes = grant.scopes.iter().map(|scope| &**scope).collect::<Vec<_>>().join(" ");
        Self {
            oauth_client: grant.client_id.as_deref().map(shorten),
            fingerprint: grant.access_token.as_ref().map(fingerprint),
            scopes: (!scopes.is_empty()).then(|| shorten(&scopes)),
        }
    }
}

/// Returns the beginning of the digest of a token.
pub(super) fn fingerprint(token: &Secret) -> String {
    let digest = Sha256::digest(token.expose());
    digest.iter().take(FINGERPRINT_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_is_the_beginning_of_the_digest() {
        // FIPS 180-2, appendix B.1.
        assert_eq!(fingerprint(&Secret::new("abc")), "ba7816bf8f01cfea");
    }
}
