//! JSON that some parsers reject: a client that cannot parse one message may end its whole connection, and with it the use of
//! all other servers.

use std::sync::{Arc, Mutex};

use serde_json::json;
use trunkline_client::Client;
use trunkline_client::protocol::LoggingLevel;
use trunkline_client::protocol::model::InputResponse;

use crate::support::{
    OLD, RecordingHandler, ScriptReply, TestServers, client, lazy, named_principal, script, serve_hub,
    text_result, until, within,
};

#[tokio::test]
async fn log_message_that_some_clients_cannot_parse_is_mended_or_dropped() {
    let town = TestServers::default();
    let (server, opener) = script(|_, message| match message["method"].as_str() {
        Some("initialize") => ScriptReply::Result(json!({
            "protocolVersion": OLD.as_str(),
            "serverInfo": { "name": "logs", "version": "1" },
            "capabilities": { "tools": {}, "logging": {} },
        })),
        Some("logging/setLevel") => ScriptReply::Result(json!({})),
        Some("tools/call") => ScriptReply::Nothing,
        _ => ScriptReply::AsUsual,
    });
    town.add_script("a", opener, OLD);
    let hub = town.hub();
    within(hub.set_servers(vec![lazy("a")])).await;
    let logged: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = logged.clone();
    let builder = Client::builder().pin(OLD);
    let builder = builder.on_log(move |message| noted.lock().unwrap().push(message.data.as_str().to_owned()));
    let client = client(&serve_hub(&hub), builder, named_principal("ann")).await;
    within(client.set_level(LoggingLevel::Debug)).await.unwrap();
    // Of two calls of one client none is named by the message.
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call("a__t", json!({})).await })
        })
        .collect();
    let received = server.received("tools/call", 2).await;
    for data in [r#""\ud800""#, "1e999", r#""last""#] {
        let params = format!(r#"{{"level":"info","data":{data}}}"#);
        server
            .newest()
            .receive(format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{params}}}"#));
    }
    until(|| logged.lock().unwrap().iter().any(|data| data == r#""last""#)).await;
    assert_eq!(*logged.lock().unwrap(), [r#""\ufffd""#, r#""last""#]);
    for call in received {
        server.answer(&call, text_result("done"));
    }
    for call in calls {
        assert!(within(call).await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn question_that_some_clients_cannot_parse_is_mended_or_refused() {
    for (title, is_asked) in [(r#""\ud800""#, true), ("1e999", false)] {
        let town = TestServers::default();
        let (server, opener) = script(|_, message| match message["method"].as_str() {
            Some("tools/call") => ScriptReply::Nothing,
            _ => ScriptReply::AsUsual,
        });
        town.add_script("a", opener, OLD);
        let hub = town.hub();
        within(hub.set_servers(vec![lazy("a")])).await;
        let answers = RecordingHandler::new(|_| Ok(InputResponse::cancel()));
        let builder = Client::builder().pin(OLD).input(answers.clone());
        let client = client(&serve_hub(&hub), builder, named_principal("ann")).await;
        let calling = tokio::spawn(async move { client.call("a__t", json!({})).await });
        let call = server.received("tools/call", 1).await.remove(0);
        let schema =
            format!(r#"{{"type":"object","properties":{{"a":{{"type":"string","title":{title}}}}}}}"#);
        server.newest().receive(format!(
            r#"{{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{{"message":"?","requestedSchema":{schema}}}}}"#
        ));
        let answer = server.answered(&json!("q")).await;
        assert_eq!(answer["result"].is_object(), is_asked, "{answer}");
        server.answer(&call, text_result("done"));
        assert!(within(calling).await.unwrap().is_ok());
        let asked = answers.asked();
        assert_eq!(asked.len(), usize::from(is_asked));
        assert!(asked.iter().all(|question| !format!("{question:?}").contains("ud800")), "{asked:?}");
    }
}
