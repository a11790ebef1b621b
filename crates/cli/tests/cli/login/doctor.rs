use super::oauth_server::ServerFault;
use super::{LoginSetup, assert_no_secret};

/// Returns the state and the words of the report's line about a subject.
#[track_caller]
fn line<'a>(report: &'a str, subject: &str) -> &'a str {
    let found = report.lines().find(|line| line.get(9..).is_some_and(|rest| rest.starts_with(subject)));
    found.unwrap_or_else(|| panic!("no `{subject}` in:\n{report}"))
}

#[test]
fn doctor_goes_through_the_steps_of_a_login() {
    let setup = LoginSetup::new("doctor_login");
    let url = setup.server.url();
    let finished = setup.run(&["doctor", &url]);
    assert_eq!(finished.code, Some(5), "{finished:?}");
    for (subject, state, part) in [
        ("challenge", "ok", "HTTP 401"),
        ("resource metadata", "ok", "scopes: mcp:use"),
        ("authorization server", "ok", url.trim_end_matches("/mcp")),
        ("pkce", "ok", "S256"),
        ("registration", "ok", "dynamic registration"),
        ("scopes", "ok", "mcp:use"),
        ("login", "problem", "none is stored: run `trunkline login http"),
        ("authorization  ", "problem", "credentials required (HTTP 401)"),
    ] {
        let line = line(&finished.stdout, subject);
        assert!(line.starts_with(state) && line.contains(part), "{line}");
    }
    assert_eq!(setup.server.registrations(), 0, "nothing is registered");
    assert_eq!(setup.log_in(&[]).code, Some(0));
    let finished = setup.run(&["doctor", &url]);
    let authorization = line(&finished.stdout, "authorization  ");
    assert!(authorization.contains("logged in as ann; issuer http"), "{finished:?}");
    assert_no_secret(&finished, &setup.store());
    setup.server.forget_tokens();
    let finished = setup.run(&["doctor", &url]);
    assert!(
        line(&finished.stdout, "login").contains("the server rejects it: run `trunkline login"),
        "{finished:?}"
    );
    assert_no_secret(&finished, &setup.store());
}

#[test]
fn doctor_names_the_wrong_step_of_a_login() {
    let setup = LoginSetup::new("doctor_wrong_step");
    let url = setup.server.url();
    for (fault, subject, part) in [
        (ServerFault::NoMetadata, "resource metadata", "none found"),
        (ServerFault::OtherIssuer, "authorization server", "https://other.example"),
        (ServerFault::NoPkce, "authorization server", "code_challenge_methods_supported"),
        (ServerFault::NoRegistration, "registration", "configure a client"),
    ] {
        setup.server.set_fault(fault);
        let finished = setup.run(&["doctor", &url]);
        assert_eq!(finished.code, Some(5), "{finished:?}");
        let problems: Vec<_> = finished.stdout.lines().filter(|line| line.starts_with("problem")).collect();
        assert!(problems[0].contains(subject) && problems[0].contains(part), "{fault:?}: {problems:?}");
        assert!(line(&finished.stdout, "challenge").starts_with("ok"), "{finished:?}");
    }
}
