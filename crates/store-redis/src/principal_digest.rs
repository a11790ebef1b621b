//! Digests of principals, by which Redis compares them.

use sha2::{Digest as _, Sha256};
use trunkline_session::Principal;

/// A secret of the store, so that a reader of Redis cannot guess principals by their digests.
pub(crate) type StoreSalt = [u8; 16];

/// Returns the digest of a principal; the kinds never have the same one, whatever the name.
pub(crate) fn principal_digest(salt: &StoreSalt, principal: &Principal) -> [u8; 16] {
    let (kind, name) = match principal {
        Principal::Anonymous => (0, ""),
        Principal::Process => (1, ""),
        Principal::Named(name) => (2, &**name),
    };
    let digest = Sha256::new_with_prefix(b"trunkline store principal")
        .chain_update(salt)
        .chain_update([kind])
        .chain_update(name)
        .finalize();
    digest.first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_of_different_kinds_or_names_or_stores_have_different_digests() {
        let named = |name: &str| Principal::Named(name.into());
        let all = [Principal::Anonymous, Principal::Process, named(""), named("ann"), named("process")];
        let mut digests: Vec<_> = all.iter().map(|principal| principal_digest(&[1; 16], principal)).collect();
        digests.extend(all.iter().map(|principal| principal_digest(&[2; 16], principal)));
        let mut distinct = digests.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), digests.len());
        assert_eq!(principal_digest(&[1; 16], &named("ann")), digests[3]);
    }
}
