//! Logins at the servers of a hub: through its page, by the users of a hub, and ended by its operator.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::LoginSetup;
use crate::bare_client::{HttpReply, get, post, send};
use crate::messages::{call, modern, parse_lines};
use crate::process::{RunningCommand, file};

impl LoginSetup {
    /// Starts a hub of the user with the server as `shop`, and further tables.
    fn serve_hub(&self, tables: &str) -> (RunningCommand, SocketAddr) {
        let url = self.server.url();
        file(&self.home, "trunkline.toml", &format!("[servers.shop]\nurl = \"{url}\"\n{tables}"), 0o600);
        let port_file = self.home.join("address");
        let port = port_file.to_str().unwrap();
        let mut hub = self.start(&["serve", "--trust", "--http", "127.0.0.1:0", "--port-file", port]);
        hub.wait_for("listening on http://127.0.0.1:");
        let address = std::fs::read_to_string(&port_file).unwrap().trim_end().parse().unwrap();
        (hub, address)
    }

    /// Opens a link in a browser and logs in; `token` is that of a user of the hub.
    fn open_link(&self, hub: SocketAddr, link: &str, token: Option<&str>) {
        let path = format!("/connect/{}", link.trim().split("/connect/").nth(1).unwrap());
        let form = |headers: &[(&str, &str)], body: &str| -> HttpReply {
            let kind = ("Content-Type", "application/x-www-form-urlencoded");
            send(hub, &format!("POST {path}"), &[headers, &[kind]].concat(), body)
        };
        let consent = match token {
            Some(token) => form(&[], &format!("token={token}")),
            None => get(hub, &path, &[]),
        };
        let key = consent.body.split("name=\"form_key\" value=\"").nth(1).unwrap().split('"').next().unwrap();
        let cookie = consent.header("set-cookie").unwrap().split(';').next().unwrap();
        let sent = form(&[("Cookie", cookie)], &format!("form_key={key}"));
        let redirect = self.server.agree(sent.header("location").unwrap());
        let callback = redirect.strip_prefix(&format!("http://{hub}")).unwrap();
        let done = get(hub, callback, &[("Cookie", cookie)]);
        assert_eq!(done.status, 200, "{done:?}");
    }
}

const ANN: &str = "ann-token-0123456789";
const BOB: &str = "bob-token-0123456789";

/// Calls the tool of the server as a user of the hub, and returns the text of the result.
fn echo(hub: SocketAddr, token: &str) -> String {
    let message = modern(1, "tools/call", call("shop__echo", json!({ "message": "hi" })));
    let reply = post(hub, &message, &[("Authorization", &format!("Bearer {token}"))]);
    reply.json()["result"]["content"][0]["text"].as_str().unwrap_or(&reply.body).to_owned()
}

#[test]
fn login_by_name_goes_through_the_page_of_a_running_hub() {
    let setup = LoginSetup::new("login_hub_page");
    let (hub, address) = setup.serve_hub("");
    let mut login = setup.start(&["login", "shop"]);
    let link = login.wait_for("/connect/");
    setup.open_link(address, &link, None);
    let finished = login.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.starts_with("logged in to shop as ann\n"), "{finished:?}");
    // The hub and the client commands share the login.
    let message = modern(1, "tools/call", call("shop__echo", json!({ "message": "hi" })));
    assert_eq!(post(address, &message, &[]).json()["result"]["content"][0]["text"], "hi");
    assert_eq!(setup.run(&["call", "shop", "echo", "message=hi"]).stdout, "hi\n");
    assert_eq!(setup.server.registrations(), 1);
    let unknown = setup.run(&["login", "shopp"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    drop(hub);
}

#[test]
fn login_with_options_is_used_by_the_running_hub_at_once() {
    let setup = LoginSetup::new("login_hub_options");
    let (_hub, address) = setup.serve_hub("");
    let state = || {
        let servers = setup.run(&["servers", "--json"]);
        let printed: Value = serde_json::from_str(&servers.stdout).unwrap();
        printed["servers"][0]["state"].as_str().unwrap_or(&servers.stdout).to_owned()
    };
    let message = modern(1, "tools/list", json!({}));
    assert_eq!(post(address, &message, &[]).json()["result"]["tools"][0]["name"], "shop__login");
    assert_eq!(state(), "needs-auth");
    let mut login = setup.start(&["login", "shop", "--no-browser", "--scope", "extra"]);
    let redirect = setup.server.agree(&login.wait_for("/authorize?"));
    login.write(&format!("{redirect}\n"));
    let finished = login.finish();
    assert_eq!((finished.code, finished.stderr.contains("warning")), (Some(0), false), "{finished:?}");
    assert_eq!(state(), "ready");
}

#[test]
fn operator_ends_the_logins_of_one_user_with_and_without_a_running_hub() {
    let setup = LoginSetup::new("login_hub_users");
    file(&setup.home, "tokens", &format!("ann {ANN}\nbob {BOB}\n"), 0o600);
    file(&setup.home, "vault.key", &"k".repeat(32), 0o600);
    let tables = "[auth]\ntokens = \"tokens\"\n[audit]\nfile = \"calls.jsonl\"\n\
                  [vault]\nfile = \"vault/tokens.json\"\nkey_files = [\"vault.key\"]\n";
    let (hub, address) = setup.serve_hub(tables);
    let untrusted = setup.run(&["logins", "--all-users"]);
    assert_eq!(untrusted.code, Some(3), "the file could name any vault: {untrusted:?}");
    assert!(
        untrusted.stderr.contains("[vault]") && untrusted.stderr.contains("trunkline trust"),
        "{untrusted:?}"
    );
    assert_eq!(setup.run(&["trust"]).code, Some(0));
    for token in [ANN, BOB] {
        // Each request of Bob needs a new token.
        setup.server.set_life(if token == BOB { 0 } else { 3600 });
        let asked = echo(address, token);
        let link = asked.split_whitespace().find(|word| word.contains("/connect/"));
        setup.open_link(address, link.unwrap_or_else(|| panic!("{asked}")), Some(token));
        assert_eq!(echo(address, token), "hi");
    }
    let local = setup.run(&["login", "shop"]);
    assert_eq!(local.code, Some(5), "{local:?}");
    assert!(local.stderr.contains("the running hub has users"), "{local:?}");
    let stored = std::fs::read_to_string(setup.home.join("vault/tokens.json")).unwrap();
    assert!(!stored.contains("secret-") && !stored.contains("shop"), "{stored}");
    assert!(!setup.store().exists(), "they are in the vault alone");
    let listed = setup.run(&["logins", "--all-users", "--json"]);
    let printed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let owners: Vec<_> =
        printed["logins"].as_array().unwrap().iter().map(|login| &login["principal"]).collect();
    assert_eq!(owners, ["ann", "bob"], "{listed:?}");
    let ended = setup.run(&["logout", "--user", "ann", "shop"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "ended 1 login of user ann\n"), "{ended:?}");
    assert_eq!(setup.server.revoked().len(), 2, "a refresh token and an access token");
    assert!(echo(address, ANN).contains("/connect/"), "the hub uses her tokens no more");
    assert_eq!(echo(address, BOB), "hi");
    let again = setup.run(&["logout", "--user", "ann"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    setup.server.forget_tokens();
    assert!(echo(address, BOB).contains("/connect/"), "his token cannot be refreshed");
    hub.signal(Signal::TERM);
    assert_eq!(hub.wait().code, Some(0));
    check_token_lines(&setup);
    let offline = setup.run(&["logout", "--user", "bob", "--json"]);
    let printed: Value = serde_json::from_str(&offline.stdout).unwrap();
    assert_eq!(
        (&printed["removed"], &printed["ended"][0]["revoked"]),
        (&json!(1), &json!(true)),
        "{offline:?}"
    );
    assert_eq!(setup.server.revoked().len(), 3, "of his, an access token is left");
}

/// Checks what the audit log has of the tokens of two users, after an operator has ended the login of one.
fn check_token_lines(setup: &LoginSetup) {
    let written = std::fs::read_to_string(setup.home.join("calls.jsonl")).unwrap();
    assert!(![ANN, BOB, "secret-"].iter().any(|secret| written.contains(secret)), "{written}");
    let lines = parse_lines(&written);
    let events: Vec<_> = lines.iter().filter(|line| line.get("event").is_some()).collect();
    let shown = |line: &&Value| format!("{} {}", line["event"], line["account"]).replace('"', "");
    let mut order: Vec<_> = events.iter().map(shown).collect();
    order.dedup();
    assert_eq!(
        order,
        [
            "token_issued user:ann",
            "token_issued user:bob",
            "token_renewed user:bob",
            "logins_ended user:ann",
            "token_renewed user:bob",
            "logins_ended user:ann",
            "token_ended user:bob",
        ],
        "{written}"
    );
    let issued = events[0];
    let origin = setup.server.url().trim_end_matches("/mcp").to_owned();
    assert_eq!(issued["server_url"], origin, "{issued}");
    assert_eq!(issued["credential"].as_str().map(str::len), Some(16), "{issued}");
    for member in ["time", "issuer", "oauth_client", "scopes", "expires"] {
        assert!(issued[member].is_string(), "{member}: {issued}");
    }
}

#[test]
fn operator_revokes_tokens_as_the_client_that_got_them() {
    let setup = LoginSetup::new("login_hub_client");
    file(&setup.home, "tokens", &format!("ann {ANN}\n"), 0o600);
    setup.server.set_client("by-hand", "secret-of-hub");
    // The first line belongs to the table of the server.
    let tables = "auth = { client_id = \"by-hand\", client_secret = \"secret-of-hub\" }\n[auth]\ntokens = \"tokens\"\n";
    let (_hub, address) = setup.serve_hub(tables);
    let asked = echo(address, ANN);
    let link = asked.split_whitespace().find(|word| word.contains("/connect/"));
    setup.open_link(address, link.unwrap_or_else(|| panic!("{asked}")), Some(ANN));
    assert_eq!(echo(address, ANN), "hi");
    let ended = setup.run(&["logout", "--user", "ann"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(setup.server.revoked().len(), 2, "a refresh token and an access token");
}

#[test]
fn vaults_that_cannot_be_used_keep_the_hub_from_starting() {
    let setup = LoginSetup::new("login_vault_invalid");
    std::fs::create_dir(setup.home.join("vault")).unwrap();
    std::fs::set_permissions(setup.home.join("vault"), std::fs::Permissions::from_mode(0o700)).unwrap();
    file(&setup.home, "vault/key", &"k".repeat(32), 0o600);
    file(&setup.home, "short", "k", 0o600);
    for (table, code, part) in [
        ("file = \"vault/tokens.json\"\nkey_files = [\"vault/key\"]", 3, "vault"),
        ("key_files = [\"short\"]", 3, "`vault.key_files`"),
        ("key_files = [\"none\"]", 3, "`vault.key_files`"),
        (
            "keychain = true\nkey_files = [\"short\"]",
            3,
            "key `vault.keychain`: there are `key_files` as well",
        ),
        #[cfg(not(feature = "keychain"))]
        ("keychain = true", 3, "this build has no keychain"),
        ("file = \"\"", 3, "key `vault.file`: it is empty"),
        ("path = \"x\"", 3, "vault.path"),
    ] {
        let config = file(&setup.home, "trunkline.toml", &format!("[vault]\n{table}\n[servers]\n"), 0o600);
        let refused = setup.run(&["serve", "--trust", "--http", "127.0.0.1:0", "--config", &config]);
        assert_eq!(refused.code, Some(code), "{table}: {refused:?}");
        assert!(refused.stderr.contains(part), "{table}: {refused:?}");
    }
}
