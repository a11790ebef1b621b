use serde_json::Value;

use super::{LoginSetup, assert_no_secret};
use crate::process::file;

#[test]
fn a_login_is_used_by_every_client_command() {
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
fn an_expired_login_is_refreshed_and_stored() {
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
fn logout_with_access_tokens_that_cannot_be_revoked_says_so() {
    let setup = LoginSetup::logged_in("logout_refresh_only");
    setup.server.set_fault(super::oauth_server::ServerFault::NoAccessRevocation);
    let finished = setup.run(&["logout", &setup.server.url()]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("revokes no access tokens"), "{finished:?}");
    assert_eq!(setup.server.revoked(), ["secret-refresh-1"]);
}

#[test]
fn a_client_that_is_registered_by_hand_is_used_again_without_options() {
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
fn a_sealed_store_has_nothing_readable() {
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
