//! Fixtures for the official conformance suite: a server that has everything which the suite calls, and a client that does
//! everything which it looks at.
//!
//! The names of the server's parts are the suite's. The description of each part is what the suite expects of it, and
//! no code in here depends on the revision of a client.

mod assets;
mod changes;
pub mod client;
mod contents;
mod forms;
mod progress;
mod prompts;
mod questions;
mod resources;
mod schemas;

use trunkline::Server;

/// Makes the server that has everything.
pub fn everything() -> Server {
    Server::new("everything")
        .title("Everything")
        .version(env!("CARGO_PKG_VERSION"))
        .description("Has every tool, prompt and resource that the conformance suite asks for.")
        .instructions("Call any tool; each says what it does.")
        .with((contents::tools, progress::tools, schemas::tools, changes::tools))
        .with((questions::tools, forms::tools))
        .with((prompts::prompts, resources::resources, resources::template))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trunkline::prelude::Content;
    use trunkline::protocol::Refusal;

    use super::*;

    #[tokio::test]
    async fn tools_that_ask_nothing_answer_without_a_transport() {
        let server = everything().handle().unwrap();
        for (tool, arguments, kinds) in [
            ("test_simple_text", json!({}), "text"),
            ("test_image_content", json!({}), "image"),
            ("test_audio_content", json!({}), "audio"),
            ("test_embedded_resource", json!({}), "resource"),
            ("test_multiple_content_types", json!({}), "text image resource"),
            ("test_slow", json!({ "milliseconds": 0 }), "text"),
            ("test_custom_header", json!({ "value": "x" }), "text"),
            ("json_schema_2020_12_tool", json!({ "name": "x", "email": "y" }), "text"),
            ("test_trigger_tool_change", json!({}), "text"),
            ("test_passing", json!({}), "text"),
            ("test_trigger_tool_change", json!({}), "text"),
        ] {
            let result = server.call(tool, arguments).await.unwrap();
            assert!(!result.is_error, "{tool}: {result:?}");
            assert_eq!(result.content.iter().map(kind).collect::<Vec<_>>().join(" "), kinds, "{tool}");
        }
        assert!(server.call("test_passing", json!({})).await.is_err(), "the tool has gone again");
        assert!(server.call("test_error_handling", json!({})).await.unwrap().is_error);
    }

    #[tokio::test]
    async fn missing_client_capability_is_named() {
        let refusal =
            everything().handle().unwrap().call("test_missing_capability", json!({})).await.unwrap_err();
        assert!(refusal.is_same_kind(&Refusal::MISSING_CAPABILITY), "{refusal}");
    }

    fn kind(content: &Content) -> &'static str {
        match content {
            Content::Text(_) => "text",
            Content::Image(_) => "image",
            Content::Audio(_) => "audio",
            Content::Resource(_) => "resource",
            _ => "other",
        }
    }
}
