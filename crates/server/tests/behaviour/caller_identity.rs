//! Caller identity: a session is known by its id, and a principal by name.

use serde_json::{Value, json};
use trunkline_server::protocol::Refusal;
use trunkline_server::session::Principal;
use trunkline_server::{Context, Resource, Server, Tool, ToolError};

use crate::support::{Client, ModernRequest, Peer, code, host, legacy, legacy_tool, service, tool_text};

#[tokio::test(start_paused = true)]
async fn client_ids_are_unique_per_session_and_absent_for_modern_callers() {
    let whoami = Tool::new("whoami").run(async |cx: Context| match cx.session_id() {
        Some(id) => id.to_string(),
        None => "null".to_owned(),
    });
    let host = host(&Server::new("s").with(whoami));
    let endpoint = Client::new(&host);
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let client = endpoint.clone().initialized("2025-11-25").await;
        let mut peer = Peer::initialized(&host, "2025-11-25").await;
        let over_http = client.post(&legacy_tool(1, "whoami")).await.answer().await;
        let again = client.post(&legacy_tool(2, "whoami")).await.answer().await;
        assert_eq!(tool_text(&over_http), tool_text(&again), "one session, one id");
        assert!(client.session().starts_with(tool_text(&over_http).trim_end_matches('…')), "{over_http}");
        ids.insert(tool_text(&over_http).to_owned());
        ids.insert(tool_text(&peer.call(&legacy_tool(1, "whoami")).await).to_owned());
    }
    assert_eq!(ids.len(), 4, "{ids:?}");
    let modern = endpoint.post(&ModernRequest::tool("whoami").value()).await.answer().await;
    assert_eq!(tool_text(&modern), "null");
}

#[tokio::test(start_paused = true)]
async fn resource_handler_can_refuse_by_principal() {
    let vault =
        Resource::new("vault://ann", "vault").read(async |cx: Context| -> Result<String, ToolError> {
            match cx.principal() {
                Principal::Named(name) if &*name == "ann" => Ok("of ann".to_owned()),
                _ => Err(ToolError::refused(Refusal::application(403, "this is not for you"))),
            }
        });
    let host = host(&Server::new("s").with(vault));
    let endpoint = service(&host);
    for (name, expected) in [("ann", None), ("bob", Some(403))] {
        let client = Client::of(&endpoint).named(name).initialized("2025-11-25").await;
        let uri = json!("vault://ann");
        let requests: [Value; 2] = [
            legacy(1, "resources/read", json!({ "uri": uri })),
            ModernRequest::new("resources/read").param("uri", uri).value(),
        ];
        for request in requests {
            let answer = client.post(&request).await.answer().await;
            match expected {
                None => assert_eq!(answer["result"]["contents"][0]["text"], "of ann", "{answer}"),
                Some(expected) => assert_eq!(code(&answer), expected, "{answer}"),
            }
        }
    }
}
