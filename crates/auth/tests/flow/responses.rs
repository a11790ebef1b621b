//! Authorization responses: `state`, `iss` and errors.

use trunkline_auth::callback::{AuthorizationCallback, CallbackError};
use trunkline_auth::challenge::ChallengeList;
use trunkline_auth::flow::{AuthorizationFlow, FlowAction, FlowFailure, FlowStep, FlowTrigger};
use trunkline_auth::pkce::FlowRandom;

use crate::driver::{CannedServer, challenged, config, now};

#[test]
fn code_is_used_only_with_the_expected_response_issuer() {
    const SUPPORTED: &str = r#","authorization_response_iss_parameter_supported":true"#;
    let table = [
        ("iss-supported", SUPPORTED, "&iss=https%3A%2F%2Fas.example", None),
        ("iss-not-advertised", "", "", None),
        ("iss-supported-missing", SUPPORTED, "", Some(CallbackError::IssuerMissing)),
        ("iss-wrong-issuer", SUPPORTED, "&iss=https://evil.example", Some(CallbackError::IssuerMismatch)),
        ("iss-unexpected", "", "&iss=https://evil.example", Some(CallbackError::IssuerMismatch)),
        ("iss-normalized", SUPPORTED, "&iss=https://as.example/", Some(CallbackError::IssuerMismatch)),
        ("not advertised, sent, right", "", "&iss=https://as.example", None),
    ];
    for (name, extra, issuer, expected) in table {
        let mut server = CannedServer::usual();
        server.server_metadata(extra);
        server.callback = Some(format!("code=the-code{issuer}"));
        let result = server.run(config(), challenged("Bearer"));
        let is_requested = server.lines().contains(&"POST https://as.example/token");
        assert_eq!(is_requested, expected.is_none(), "{name}");
        let failure = result.err().map(|error| error.failure().clone());
        assert_eq!(failure, expected.clone().map(FlowFailure::Callback), "{name}");

        // An error of the wrong issuer is not shown.
        server.callback = Some(format!("error=access_denied&error_description=sentinel{issuer}"));
        let error = server.run(config(), challenged("Bearer")).unwrap_err();
        assert_eq!(error.to_string().contains("sentinel"), expected.is_none(), "{name}");
    }
}

#[test]
fn response_to_another_request_leaves_the_flow_waiting() {
    let mut server = CannedServer::usual();
    let mut flow = page_of(&mut server);
    let error = flow.on_callback(&AuthorizationCallback::from_query("code=evil&state=other")).unwrap_err();
    assert_eq!(error.failure(), &FlowFailure::Callback(CallbackError::StateMismatch));
    assert!(matches!(flow.next(), Ok(FlowAction::OpenPage(_))));
    let state = flow.pending().state;
    let callback = AuthorizationCallback::from_query(&format!("code=c&state={}", state.expose()));
    assert!(callback.belongs_to(&flow.pending()));
    flow.on_callback(&callback).unwrap();
    assert_eq!(flow.step(), FlowStep::Token);
}

#[test]
fn events_out_of_order_change_nothing() {
    let mut server = CannedServer::usual();
    let mut flow = page_of(&mut server);
    let error = flow.on_response(&http::Response::default(), now()).unwrap_err();
    assert_eq!(error.failure(), &FlowFailure::UnexpectedEvent);
    assert!(flow.on_fetch_failed(std::io::Error::other("x"), now()).is_err());
    assert!(flow.on_assertion(trunkline_transport::Secret::new("x")).is_err());
    assert_eq!(flow.step(), FlowStep::Authorization);
}

#[test]
fn flows_and_their_errors_never_print_secrets() {
    let mut server = CannedServer::usual();
    server.callback = Some("code=sentinel-code".to_owned());
    server.json("POST https://as.example/token", 400, r#"{"error":"invalid_grant"}"#);
    let error = server.run(config(), challenged("Bearer")).unwrap_err();
    assert_eq!((error.step(), error.oauth_error().unwrap().code()), (FlowStep::Token, "invalid_grant"));
    let mut flow = page_of(&mut server);
    let pending = flow.pending();
    let callback = format!("code=sentinel-code&state={}", pending.state.expose());
    flow.on_callback(&AuthorizationCallback::from_query(&callback)).unwrap();
    let text = format!("{flow:?} {:?} {error:?} {error}", flow.next());
    assert!(!text.contains("sentinel-code") && !text.contains(pending.state.expose()), "{text}");
}

/// Walks a flow up to its page.
fn page_of(server: &mut CannedServer) -> AuthorizationFlow {
    let trigger = FlowTrigger::Challenged(ChallengeList::parse("Bearer"));
    let mut flow =
        AuthorizationFlow::new(config(), trigger, FlowRandom::draw(|bytes| bytes.fill(3))).unwrap();
    while let FlowAction::Fetch(fetch) = flow.next().unwrap() {
        let response = server.respond(&fetch.request);
        flow.on_response(&response, now()).unwrap();
    }
    flow
}
