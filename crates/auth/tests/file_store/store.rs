use std::path::{Path, PathBuf};
use std::time::SystemTime;

use trunkline_auth::scopes::ScopeSet;
use trunkline_auth::token_set::{AccessTokenKind, TokenContext, TokenSet};
use trunkline_auth::token_store::{FileTokenStore, StoreKey, TokenKey};
use trunkline_transport::Secret;

pub(crate) fn key(server: &str) -> TokenKey {
    TokenKey {
        principal: "u".to_owned(),
        server_url: server.to_owned(),
        issuer: "https://a".to_owned(),
        client_id: "client".to_owned(),
        account: None,
    }
}

pub(crate) fn tokens(access: &str) -> TokenSet {
    TokenSet {
        access_token: Secret::new(access),
        kind: AccessTokenKind::Bearer,
        refresh_token: Some(Secret::new("r".repeat(2_000))),
        issued_at: SystemTime::now(),
        expires_at: None,
        granted: ScopeSet::default(),
        dpop_key: None,
        user: None,
        context: TokenContext {
            issuer: "https://a".to_owned(),
            token_endpoint: "https://a/token".to_owned(),
            revocation_endpoint: None,
            client_id: "client".to_owned(),
            resource: None,
            requested: ScopeSet::default(),
        },
    }
}

/// Opens a store that [`create`] has made a key for.
pub(crate) fn open(path: &Path) -> FileTokenStore {
    let secret = path.parent().and_then(Path::parent).unwrap().join("key");
    FileTokenStore::open(path, StoreKey::from_files([secret]).unwrap()).unwrap()
}

/// Makes a folder with a key, and returns it with the path of a store.
pub(crate) fn create() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    write_private(&folder.path().join("key"), &[7; 32]);
    let path = folder.path().join("store/tokens.json");
    (folder, path)
}

fn write_private(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}
