//! What Redis shows, TLS, and users with rights on the keys of the store alone.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use trunkline_protocol::RawJson;
use trunkline_session::{
    EventStore as _, Principal, SessionStore as _, StateHandle, StateKeys, StateLifetime, StateRecord,
    StateStore as _,
};
use trunkline_store_redis::{RedisStore, RedisStoreLimits};

use crate::fixture::{NOW, event, open, record};
use crate::server::{RedisProcess, free_port};

/// Stores something of every kind.
async fn fill(store: &RedisStore) -> (String, String) {
    let own = record(&Principal::Named("sentinel".into()), NOW);
    store.sessions().create(own.clone(), NOW).await.unwrap();
    store.sessions().update(own.clone(), NOW).await.unwrap();
    store.events().append(own.id, event(1, 0), NOW).wait().await.unwrap();
    store.events().replay(own.id, event(1, 0).id, NOW).await.unwrap();
    let handle = StateHandle::random();
    let (principal, value) = (own.principal.clone(), RawJson::from_text("sentinel"));
    let state = StateRecord { handle, principal: principal.clone(), lifetime: StateLifetime::Idle, value };
    store.states().create(state, NOW).await.unwrap();
    let replaced = RawJson::from_text("sentinel again");
    store.states().replace(handle, &principal, 0, replaced, NOW).await.unwrap();
    assert!(store.sessions().list(&principal, NOW).await.unwrap().contains(&own));
    assert!(store.sessions().list_all(9, NOW).await.unwrap().contains(&own));
    assert_eq!(store.sessions().expire(NOW).await.unwrap(), []);
    store.states().expire(NOW).await.unwrap();
    (own.id.to_string(), handle.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_contains_neither_ids_nor_content() {
    let server = RedisProcess::start_with(&["--appendonly", "no", "--rdbcompression", "no"]);
    let store = open(&server.url(), &StateKeys::random().unwrap(), RedisStoreLimits::default()).await;
    let (id, handle) = fill(&store).await;
    let shown = format!("{store:?}");
    assert!(shown.contains("StoreHeader") && !shown.contains("salt"), "{shown}");
    assert_eq!(server.command(&["SAVE"]), "+OK");
    let bytes = std::fs::read(server.folder.path().join("dump.rdb")).unwrap();
    let contains = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    assert!(contains(b"trunkline:session:"), "the rows are in the dump");
    let raw_id = u128::from_str_radix(&id, 16).unwrap();
    for needle in [
        b"sentinel".as_slice(),
        id.as_bytes(),
        handle.as_bytes(),
        &raw_id.to_be_bytes(),
        &raw_id.to_le_bytes(),
    ] {
        assert!(!contains(needle), "{needle:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn state_does_not_open_for_the_principal_that_its_row_was_changed_to() {
    let server = RedisProcess::start();
    let store = open(&server.url(), &StateKeys::random().unwrap(), RedisStoreLimits::default()).await;
    let states = store.states();
    let [ann, bob] = ["ann", "bob"].map(|name| Principal::Named(name.into()));
    let [of_ann, of_bob] = [StateHandle::random(), StateHandle::random()];
    for (handle, principal) in [(of_ann, &ann), (of_bob, &bob)] {
        let (principal, value) = (principal.clone(), RawJson::from_text("value"));
        let state = StateRecord { handle, principal, lifetime: StateLifetime::Idle, value };
        states.create(state, NOW).await.unwrap();
    }
    let row = |handle: StateHandle| {
        format!("{{trunkline:states}}:state:{:032x}", u128::from_be_bytes(handle.row_key()))
    };
    // The principal's digest is beside the sealed value.
    let change = "local owner = redis.call('GETRANGE', KEYS[2], 24, 39) \
                  return redis.call('SETRANGE', KEYS[1], 24, owner)";
    let changed = server.command(&["EVAL", change, "2", &row(of_ann), &row(of_bob)]);
    assert!(changed.starts_with(':'), "{changed}");
    assert_eq!(states.get(of_ann, &bob, NOW).await, Ok(None));
    assert!(states.get(of_bob, &bob, NOW).await.unwrap().is_some());
}

/// Writes the certificate of an authority, and one for 127.0.0.1 with its key.
fn write_certificates(folder: &Path) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf =
        CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
    std::fs::write(folder.join("cert.pem"), leaf.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
}

/// The rights that docs/hub.md gives to the user of a store.
const RIGHTS: &str = "~trunkline:* ~{trunkline* -@all +@read +@write +@scripting +@connection +time +cluster|slots -@dangerous";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_works_over_tls_for_a_user_with_few_rights() {
    assert!(include_str!("../../../../docs/hub.md").contains(RIGHTS), "the documents name other rights");
    let files = tempfile::tempdir().unwrap();
    let path = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
    write_certificates(files.path());
    std::fs::write(path("acl"), format!("user default off\nuser hub on >open@sesame {RIGHTS}\n")).unwrap();
    std::fs::write(path("password"), "open@sesame\n").unwrap();
    let server = RedisProcess::start_on(free_port(), |port| {
        let port = port.to_string();
        let (cert, key, ca, acl) = (path("cert.pem"), path("key.pem"), path("ca.pem"), path("acl"));
        let words = [
            "--port",
            "0",
            "--tls-port",
            &port,
            "--tls-cert-file",
            &cert,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &ca,
            "--tls-auth-clients",
            "no",
            "--save",
            "",
            "--aclfile",
            &acl,
        ];
        words.map(str::to_owned).to_vec()
    });
    let host = format!("127.0.0.1:{}", server.port);
    let keys = StateKeys::random().unwrap();
    let (ca, password) = (path("ca.pem"), path("password"));
    for url in [
        format!("rediss://hub@{host}?ca={ca}&password_file={password}"),
        format!("rediss://hub:open%40sesame@{host}?ca={ca}"),
    ] {
        fill(&open(&url, &keys, RedisStoreLimits::default()).await).await;
    }
    for refused in [
        format!("rediss://hub:other@{host}?ca={ca}"),
        format!("rediss://{host}?ca={ca}"),
        // The authority is unknown.
        format!("rediss://hub:open%40sesame@{host}"),
        // There is no TLS.
        format!("redis://hub:open%40sesame@{host}"),
        // The user has no rights on other keys.
        format!("rediss://hub:open%40sesame@{host}?ca={ca}&prefix=other"),
    ] {
        let opened = RedisStore::open(&refused.parse().unwrap(), &keys, RedisStoreLimits::default()).await;
        let error = opened.unwrap_err().to_string();
        assert!(!error.contains("sesame"), "{error}");
    }
}
