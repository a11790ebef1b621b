//! Tokens that all users share.

use trunkline_client::Client;
use trunkline_config::AuthKind;

use crate::front::{ANN, BOB, Front, say};
use crate::protected_server::ProtectedServer;

#[tokio::test]
async fn servers_with_credentials_of_the_hub_need_no_login() {
    let folder = std::env::temp_dir().join(format!("trunkline-logins-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("token");
    std::fs::write(&file, "workload-jwt\n").unwrap();
    let path = file.display().to_string();
    let table: [(AuthKind, &str, &str); 3] = [
        (AuthKind::ClientCredentials, "the hub", "client_credentials"),
        (AuthKind::WorkloadIdentity, "workload-jwt", "jwt-bearer"),
        (AuthKind::Enterprise, "id-jag-of-workload-jwt", "token-exchange"),
    ];
    for (kind, user, grant) in table {
        let server = ProtectedServer::start(&[user]).await;
        let mut config = server.config("notes");
        let is_client = kind != AuthKind::WorkloadIdentity;
        config.auth.kind = kind;
        config.auth.client_id = is_client.then(|| "the-client".into());
        config.auth.client_secret = is_client.then(|| "the-secret".into());
        config.auth.token_file = (kind != AuthKind::ClientCredentials).then(|| (&*path).into());
        if kind == AuthKind::Enterprise {
            config.auth.idp_token_endpoint = Some((&*format!("{}/token", server.origin)).into());
            config.auth.idp_client_id = Some("at-the-idp".into());
        }
        let front = Front::for_users(vec![config]).await;
        for token in [ANN, BOB] {
            let client = front.client(Client::builder(), token).await;
            assert_eq!(say(&client, "notes__whoami").await, user, "{kind:?}");
        }
        assert_eq!(server.issuer.grants(grant), 1, "{kind:?}: the token is shared");
        assert!(!server.was_sent(ANN.1) && !server.was_sent(BOB.1), "{kind:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
