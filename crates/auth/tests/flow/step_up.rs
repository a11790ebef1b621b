//! Which scopes are requested.

use trunkline_auth::scopes::ScopeSet;

use crate::driver::{CannedServer, challenged, config};

#[test]
fn scopes_come_from_challenge_or_resource_or_are_omitted() {
    let challenge = r#"Bearer scope="mcp:basic""#;
    let resource = r#","scopes_supported":["a","b"]"#;
    let offline = r#","scopes_supported":["offline_access","z"]"#;
    let table = [
        ("scope-from-www-authenticate", challenge, resource, "", Some("mcp:basic")),
        ("scope-from-scopes-supported", "Bearer", resource, "", Some("a b")),
        ("scope-omitted-when-undefined", "Bearer", "", "", None),
        ("offline-access-scope", challenge, resource, offline, Some("mcp:basic offline_access")),
        (
            "offline-access-not-supported",
            challenge,
            resource,
            r#","scopes_supported":["z"]"#,
            Some("mcp:basic"),
        ),
    ];
    for (name, challenge, resource, server_scopes, expected) in table {
        let mut server = CannedServer::usual();
        server.resource_metadata(resource);
        server.server_metadata(server_scopes);
        let outcome = server.run(config(), challenged(challenge)).unwrap();
        assert_eq!(server.page_parameter("scope").as_deref(), expected, "{name}");
        assert_eq!(outcome.tokens.context.requested.to_string(), expected.unwrap_or_default(), "{name}");
    }
}

#[test]
fn step_up_requests_the_union_with_earlier_scopes() {
    let mut server = CannedServer::usual();
    server.resource_metadata(r#","scopes_supported":["decoy"]"#);
    let first = server.run(config(), challenged(r#"Bearer scope="mcp:basic""#)).unwrap();
    let mut config = config();
    config.previous_scopes = first.tokens.context.requested;
    config.registrations.extend(first.client);
    let challenge = r#"Bearer error="insufficient_scope", scope="mcp:write""#;
    let second = server.run(config, challenged(challenge)).unwrap();
    assert_eq!(server.page_parameter("scope").as_deref(), Some("mcp:basic mcp:write"));
    assert_eq!(second.tokens.context.requested, ScopeSet::parse("mcp:basic mcp:write"));
}
