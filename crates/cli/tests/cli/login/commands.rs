use serde_json::Value;

use super::{LoginSetup, assert_no_secret};
use crate::process::file;

#[test]
fn every_client_command_uses_the_stored_login() {
    let setup = LoginSetup::logged_in("login_used");
    let url = setup.server.url();
    let config =
        file(&setup.home, "mcp.json", &format!(r#"{{"mcpServers":{{"shop":{{"url":"{url}"}}}}}}"#), 0o600);
    for words in [
        &["call", &url, "echo", "message=hi"][..],
        &["call", "shop", "echo", "message=hi"],
        &["call", "shop", "echo", "message=hi", "--config", &config],
        &["call", &url, "echo", "message=hi", "--era", "legacy"],
        &["tools", &url],
        &["prompts", &url],
        &["resources", &url],
        &["info", &url],
        &["read", &url, "time://now"],
    ] {
        let finished = setup.run(words);
        assert_eq!(finished.code, Some(0), "{words:?}: {finished:?}");
        assert_no_secret(&finished, &setup.store());
    }
    assert_eq!(setup.server.registrations(), 1);
}

#[test]
fn expired_login_is_refreshed_and_stored() {
    let setup = LoginSetup::new("login_refresh");
    setup.server.set_life(0);
    assert_eq!(setup.log_in(&[]).code, Some(0));
    setup.server.set_life(3600);
    let url = setup.server.url();
    for _ in 0..3 {
        let finished = setup.run(&["call", &url, "echo", "message=hi"]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "hi\n"), "{finished:?}");
    }
    assert_eq!(setup.server.refreshes(), 1, "the rotated token was stored");
}

#[test]
fn no_output_of_login_commands_has_a_token() {
    let setup = LoginSetup::new("login_output");
    let login = setup.log_in(&["--scope", "extra", "--json"]);
    assert_eq!(login.code, Some(0), "{login:?}");
    let printed: Value = serde_json::from_str(&login.stdout).unwrap();
    assert_eq!((&printed["user"], &printed["tokenType"]), (&"ann".into(), &"Bearer".into()));
    assert!(setup.server.scopes().contains("extra") && setup.server.scopes().contains("mcp:use"));
    let list = setup.run(&["logins"]);
    assert_eq!(list.code, Some(0), "{list:?}");
    for part in ["SERVER", "ann", "renewed automatically", &setup.server.url()] {
        assert!(list.stdout.contains(part), "{list:?}");
    }
    let json = setup.run(&["logins", "--json"]);
    let printed: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(printed["protection"], "plain file, mode 0600");
    assert_eq!(printed["logins"][0]["server"], setup.server.url());
    let verbose = setup.run(&["tools", &setup.server.url(), "-v"]);
    let logout = setup.run(&["logout", &setup.server.url()]);
    for finished in [&login, &list, &json, &verbose, &logout] {
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_no_secret(finished, &setup.store());
    }
}

#[test]
fn logout_revokes_the_tokens_and_removes_them() {
    let setup = LoginSetup::logged_in("logout");
    let url = setup.server.url();
    let finished = setup.run(&["logout", &url]);
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(finished.stdout, format!("logged out of {url}\n"));
    let revoked = setup.server.revoked();
    assert_eq!((revoked.len(), revoked[0].as_str()), (2, "secret-refresh-1"));
    let empty = setup.run(&["logins"]);
    assert_eq!((empty.stdout.as_str(), empty.code), ("", Some(0)));
    assert_eq!(setup.run(&["tools", &url]).code, Some(5));
    let again = setup.run(&["logout", &url]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("there is no login at"), "{again:?}");
}

#[test]
fn logout_without_the_authorization_server_removes_the_tokens_with_a_warning() {
    let setup = LoginSetup::logged_in("logout_offline");
    setup.server.set_fault(super::oauth_server::ServerFault::NoRevocation);
    let finished = setup.run(&["logout", &setup.server.url()]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("removed but not revoked at"), "{finished:?}");
    assert!(finished.stderr.contains("/revoke") && finished.stderr.contains("503"), "{finished:?}");
    assert_no_secret(&finished, &setup.store());
    assert_eq!(setup.run(&["logins"]).stdout, "");
}

#[test]
fn logout_reports_access_tokens_that_cannot_be_revoked() {
    let setup = LoginSetup::logged_in("logout_refresh_only");
    setup.server.set_fault(super::oauth_server::ServerFault::NoAccessRevocation);
    let finished = setup.run(&["logout", &setup.server.url()]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("revokes no access tokens"), "{finished:?}");
    assert_eq!(setup.server.revoked(), ["secret-refresh-1"]);
}

#[test]
fn preregistered_client_is_reused_without_options() {
    let setup = LoginSetup::new("login_client");
    setup.server.set_fault(super::oauth_server::ServerFault::NoRegistration);
    let secret = file(&setup.home, "secret", "secret-of-client\n", 0o600);
    let options = ["--client-id", "by-hand", "--client-secret", &format!("@{secret}"), "--port", "33777"];
    setup.server.set_life(0);
    let login = setup.log_in(&options);
    assert_eq!(login.code, Some(0), "{login:?}");
    let tools = setup.run(&["tools", &setup.server.url()]);
    assert_eq!(tools.code, Some(0), "{tools:?}");
    assert_eq!(setup.server.registrations(), 0);
    let stored = std::fs::read_to_string(setup.store()).unwrap();
    assert!(stored.contains("by-hand") && stored.contains("secret-of-client"), "it is needed for refreshes");
    assert_eq!(setup.run(&["logout", &setup.server.url()]).code, Some(0));
    assert!(!std::fs::read_to_string(setup.store()).unwrap().contains("secret-of-client"));
}

#[test]
fn configured_client_secret_is_not_stored_and_counts_after_a_rotation() {
    let setup = LoginSetup::new("login_rotated_secret");
    let (url, server) = (setup.server.url(), &setup.server);
    let configure = |secret: &str| {
        let auth = format!("{{ client_id = \"by-hand\", client_secret = \"{secret}\" }}");
        let text = format!("[servers.shop]\nurl = \"{url}\"\nauth = {auth}\n");
        file(&setup.home, "trunkline.toml", &text, 0o600);
    };
    let stored = || std::fs::read_to_string(setup.store()).unwrap();
    server.set_life(0);
    server.set_client("by-hand", "first-of-client");
    // As an earlier version has stored it.
    let secret = file(&setup.home, "secret", "first-of-client\n", 0o600);
    let login = setup.log_in(&["--client-id", "by-hand", "--client-secret", &format!("@{secret}")]);
    assert_eq!(login.code, Some(0), "{login:?}");
    assert!(stored().contains("first-of-client"));
    server.set_client("by-hand", "second-of-client");
    configure("second-of-client");
    let tools = setup.run(&["tools", "shop"]);
    assert_eq!(tools.code, Some(0), "the stored secret is outdated: {tools:?}");
    // A login by name leaves the secret where it is configured.
    let mut login = setup.start(&["login", "shop", "--no-browser"]);
    let redirect = server.agree(&login.wait_for("/authorize?"));
    login.write(&format!("{redirect}\n"));
    let login = login.finish();
    assert_eq!(login.code, Some(0), "{login:?}");
    assert!(stored().contains("by-hand") && !stored().contains("of-client"), "{}", stored());
    server.set_client("by-hand", "third-of-client");
    configure("third-of-client");
    assert_eq!(setup.run(&["tools", "shop"]).code, Some(0));
    let by_url = setup.run(&["tools", &url]);
    assert_eq!(by_url.code, Some(5), "{by_url:?}");
    assert!(by_url.stderr.contains("the client `by-hand` has a secret"), "{by_url:?}");
    assert_eq!(setup.run(&["tools", "shop"]).code, Some(0), "the login is not lost");
    let logout = setup.run(&["logout", "shop"]);
    assert_eq!((logout.code, logout.stderr.as_str()), (Some(0), ""), "{logout:?}");
    assert_eq!(server.revoked().len(), 2, "a refresh token and an access token");
}

#[test]
fn encrypted_store_has_no_readable_token() {
    let setup = LoginSetup::new("login_sealed");
    let key = file(&setup.home, "key", &"k".repeat(32), 0o600);
    let variables = [("TRUNKLINE_LOGIN_KEY", key.as_str())];
    let url = setup.server.url();
    let words = ["login", &url, "--no-browser"];
    let mut login = crate::process::RunningCommand::start_at_home(&words, &setup.home, &variables);
    let redirect = setup.server.agree(&login.wait_for("/authorize?"));
    login.write(&format!("{redirect}\n"));
    assert_eq!(login.finish().code, Some(0));
    let stored = std::fs::read_to_string(setup.store()).unwrap();
    assert!(!stored.contains("secret-") && !stored.contains(&url), "{stored}");
    let tools = crate::process::run_at_home(&["tools", &url], &setup.home, &variables);
    assert_eq!(tools.code, Some(0), "{tools:?}");
    let without = setup.run(&["logins"]);
    assert_eq!(without.code, Some(3), "{without:?}");
    assert!(without.stderr.contains("is sealed, and no key was given"), "{without:?}");
}
