use super::oauth_server::ServerFault;
use super::{LoginSetup, assert_no_secret};
use crate::process::{FinishedCommand, file};

#[test]
fn script_without_login_fails_with_the_command_to_run() {
    let setup = LoginSetup::new("login_script");
    let url = setup.server.url();
    file(&setup.home, "mcp.json", &format!(r#"{{"mcpServers":{{"shop":{{"url":"{url}"}}}}}}"#), 0o600);
    for (target, command) in
        [(url.as_str(), format!("trunkline login {url}")), ("shop", "trunkline login shop".into())]
    {
        for words in [&["tools", target][..], &["call", target, "echo"], &["info", target]] {
            let finished = setup.run(words);
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(5), ""), "{finished:?}");
            assert!(finished.stderr.contains("requires a login"), "{finished:?}");
            assert!(finished.stderr.contains(&format!("run `{command}`")), "{finished:?}");
        }
    }
    assert_eq!(setup.server.registrations(), 0, "a script registers no client");
    assert!(!setup.store().exists());
    let json = setup.run(&["tools", &url, "--json"]);
    let printed: serde_json::Value = serde_json::from_str(&json.stderr).unwrap();
    assert_eq!(printed["exit"], 5);
}

#[test]
fn ended_login_fails_with_the_command_to_run() {
    let setup = LoginSetup::logged_in("login_ended");
    setup.server.forget_tokens();
    for _ in 0..2 {
        let finished = setup.run(&["tools", &setup.server.url()]);
        assert_eq!(finished.code, Some(5), "{finished:?}");
        assert!(finished.stderr.contains("run `trunkline login http"), "{finished:?}");
        assert_no_secret(&finished, &setup.store());
    }
    assert_eq!(setup.server.refreshes(), 1, "a rejected refresh token is not sent again");
    assert_eq!(setup.log_in(&[]).code, Some(0));
    assert_eq!(setup.run(&["tools", &setup.server.url()]).code, Some(0));
}

#[test]
fn missing_scopes_fail_with_the_command_that_requests_them() {
    let setup = LoginSetup::logged_in("login_scope");
    setup.server.set_fault(ServerFault::NeedsScope);
    let url = setup.server.url();
    let words = ["call", &url, "echo", "message=hi"];
    let finished = setup.run(&words);
    check(&finished, 5, &[&format!("run `trunkline login {url} --scope"), "--scope shop:write"]);
    let stored = std::fs::read_to_string(setup.store()).unwrap();
    let token = stored.split('"').find(|text| text.ends_with(".c2lnbmF0dXJl")).unwrap();
    let bearer = [&words[..], &["--bearer", "env:TOKEN"]].concat();
    let finished = crate::process::run_at_home(&bearer, &setup.home, &[("TOKEN", token)]);
    check(&finished, 5, &["`trunkline login TARGET --scope shop:write`"]);
}

#[track_caller]
fn check(finished: &FinishedCommand, code: i32, parts: &[&str]) {
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(code), ""), "{finished:?}");
    for part in parts {
        assert!(finished.stderr.contains(part), "`{part}` is not in {finished:?}");
    }
}

#[test]
fn failed_logins_name_the_step_the_url_and_the_error() {
    let setup = LoginSetup::new("login_failures");
    let url = setup.server.url();
    let base = url.trim_end_matches("/mcp");
    let metadata = format!("{base}/.well-known/oauth-authorization-server");
    for (fault, parts) in [
        (ServerFault::NoMetadata, &["has no OAuth metadata to log in with", "--bearer"][..]),
        (
            ServerFault::OtherIssuer,
            &["authorization server metadata failed", &metadata, "https://other.example"],
        ),
        (ServerFault::NoPkce, &["authorization server metadata failed", "code_challenge_methods_supported"]),
        (ServerFault::NoRegistration, &["client registration failed", base, "--client-id"]),
    ] {
        setup.server.set_fault(fault);
        check(&setup.run(&["login", &url, "--no-browser"]), 5, parts);
    }
    setup.server.set_fault(ServerFault::RefusedCodes);
    let refused = setup.log_in(&[]);
    check(&refused, 5, &["token request failed", &format!("{base}/token"), "invalid_grant (not today)"]);
    assert_no_secret(&refused, &setup.store());
}

#[test]
fn invalid_pasted_redirects_never_log_in() {
    let setup = LoginSetup::new("login_pasted");
    let url = setup.server.url();
    for (pasted, part) in [
        ("", "no redirect URL was entered"),
        ("\n", "the login was cancelled"),
        ("http://127.0.0.1:33418/callback?error=access_denied&state=other\n", "no redirect URL was entered"),
    ] {
        let mut login = setup.start(&["login", &url, "--no-browser"]);
        login.wait_for("/authorize?");
        login.write(pasted);
        check(&login.finish(), 5, &[part]);
    }
    assert!(!setup.run(&["logins", "--json"]).stdout.contains("issuer"));
}

#[test]
fn wrong_targets_and_options_of_a_login_are_usage_errors() {
    let setup = LoginSetup::new("login_usage");
    for (words, part) in [
        (&["login", "npx -y server"][..], "is a program, which needs no login"),
        (&["login", "https://h/mcp", "--client-secret", "env:X"], "--client-id"),
        (&["login", "https://h/mcp", "--client-id", "x", "--client-secret", "typed"], "env:NAME or @FILE"),
        (&["login"], "TARGET"),
    ] {
        check(&setup.run(words), 2, &[part]);
    }
    check(&setup.run(&["login", "nowhere"]), 3, &["no server named `nowhere`"]);
}

#[test]
fn damaged_store_is_reported_and_never_overwritten() {
    let setup = LoginSetup::logged_in("login_damaged");
    std::fs::write(setup.store(), "{ not ours").unwrap();
    check(&setup.run(&["logins"]), 3, &["is not a token store of trunkline; it was not changed"]);
    check(&setup.run(&["login", &setup.server.url()]), 3, &["is not a token store"]);
    let tools = setup.run(&["tools", &setup.server.url()]);
    check(&tools, 5, &["warning: going on without stored logins", "requires a login"]);
    assert_eq!(std::fs::read_to_string(setup.store()).unwrap(), "{ not ours");
}

#[test]
fn interrupted_logins_end_with_130() {
    let setup = LoginSetup::new("login_interrupted");
    let mut login = setup.start(&["login", &setup.server.url(), "--no-browser"]);
    login.wait_for("/authorize?");
    login.signal(rustix::process::Signal::INT);
    let finished = login.wait();
    check(&finished, 130, &["interrupted"]);
}
