use trunkline_protocol::era::{MessageRoute, route_channel, route_http};

use super::message;

const CLAIM: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Names a route, and for a refusal the beginning of its message.
fn name(route: &MessageRoute) -> String {
    match route {
        MessageRoute::Refuse(refusal) => format!("refused: {:.20}", refusal.message()),
        other => format!("{other:?}"),
    }
}

fn text(kind: &str) -> String {
    match kind {
        "modern" => format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{CLAIM}}}}}"#),
        "half modern" => r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}}"#.into(),
        "modern initialize" => format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{{CLAIM}}}}}"#),
        "initialize" => r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#.into(),
        "ping" => r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.into(),
        "discover" => r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#.into(),
        "request" => r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.into(),
        "notification" => r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(),
        "modern notification" => format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{{CLAIM}}}}}"#),
        "response" => r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into(),
        other => panic!("{other}"),
    }
}

#[test]
fn http_messages_are_routed_by_their_body() {
    let session_required = "refused: no session: send `in";
    let foreign_response = "refused: a response may only ";
    for (kind, header, session, expected) in [
        ("modern", None, false, "Modern"),
        ("modern", Some("2026-07-28"), false, "Modern"),
        ("modern", Some("2025-06-18"), true, "Modern"),
        ("half modern", None, true, "Modern"),
        ("modern initialize", None, false, "Modern"),
        ("initialize", None, false, "Initialize"),
        ("initialize", Some("2025-06-18"), true, "Initialize"),
        ("initialize", Some("2026-07-28"), false, "Initialize"),
        ("initialize", Some("nonsense"), false, "Initialize"),
        ("request", Some("2026-07-28"), false, "Modern"),
        ("request", Some("2027-01-01"), true, "Modern"),
        ("request", Some("2025-06-18"), true, "Session"),
        ("request", None, true, "Session"),
        ("request", Some("2025-06-18"), false, session_required),
        ("request", Some("v9999-01-01"), false, session_required),
        ("request", None, false, session_required),
        ("notification", Some("2026-07-28"), false, "Drop"),
        ("modern notification", None, true, "Drop"),
        ("notification", None, true, "Session"),
        ("notification", None, false, session_required),
        ("response", None, true, "Session"),
        ("response", None, false, foreign_response),
    ] {
        let route = route_http(&message(&text(kind)), header.map(str::as_bytes), session);
        assert_eq!(name(&route), expected, "{kind}, version {header:?}, session {session}");
    }
}

#[test]
fn channel_messages_are_routed_by_era_and_session() {
    let initialize_first = "refused: send `initialize` fi";
    for (kind, initialized, expected) in [
        ("modern", false, "Modern"),
        ("modern", true, "Modern"),
        ("half modern", true, "Modern"),
        ("modern initialize", false, "Modern"),
        ("initialize", false, "Initialize"),
        ("initialize", true, "Initialize"),
        ("ping", false, "Session"),
        ("ping", true, "Session"),
        ("discover", false, "Modern"),
        ("request", false, initialize_first),
        ("request", true, "Session"),
        ("notification", false, "Session"),
        ("response", false, "Drop"),
        ("response", true, "Session"),
    ] {
        let route = route_channel(&message(&text(kind)), initialized);
        assert_eq!(name(&route), expected, "{kind}, initialized {initialized}");
    }
}
