//! Roots: when they are requested from a client, how often, and what holds until the response.

use serde_json::{Value, json};
use trunkline_server::{Context, Host, HostOptions, Server, Tool, ToolError};

use crate::support::{
    Client, JSON_ONLY, ModernRequest, Peer, initialize, legacy, legacy_tool, note, questions, response,
    settle, text, tool_text,
};

fn server() -> Server {
    let list = async |cx: Context| -> Result<String, ToolError> {
        let uris: Vec<String> = cx.roots().await?.into_iter().map(|root| root.uri).collect();
        Ok(uris.join(" "))
    };
    let twice = async |cx: Context| -> Result<String, ToolError> {
        let (one, two) = (cx.clone(), cx.clone());
        let both =
            (tokio::spawn(async move { one.roots().await }), tokio::spawn(async move { two.roots().await }));
        let (one, two) = (both.0.await?, both.1.await?);
        Ok(format!("{} {} {}", one?.len(), two?.len(), cx.roots().await?.len()))
    };
    let marked = async |cx: Context| -> Result<String, ToolError> {
        let mut roots = cx.roots().await?;
        roots.retain(|root| root.meta.as_ref().is_some_and(|meta| meta.get("trunkline/source").is_some()));
        Ok(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
    };
    let thrice = async |cx: Context| -> Result<String, ToolError> {
        let roots = (cx.roots().await?, cx.primary_root().await?, cx.in_roots("/a/b").await?);
        Ok(format!("{} {} {}", roots.0.len(), roots.1.is_some(), roots.2))
    };
    Server::new("s")
        .with(Tool::new("thrice").run(thrice))
        .with(Tool::new("list").run(list))
        .with(Tool::new("twice").run(twice))
        .with(Tool::new("marked").run(marked))
}

fn host() -> Host {
    crate::support::host(&server())
}

/// A host that requests the roots of every session when it begins.
fn host_at_start() -> Host {
    server().host(HostOptions { roots_at_start: true, ..HostOptions::default() }).unwrap()
}

fn capabilities() -> Value {
    json!({ "roots": { "listChanged": true } })
}

fn roots(uris: &[&str]) -> Value {
    json!({ "roots": uris.iter().map(|uri| json!({ "uri": uri })).collect::<Vec<_>>() })
}

const CHANGED: &str = "notifications/roots/list_changed";

#[tokio::test(start_paused = true)]
async fn channel_roots_at_start_are_requested_after_handshake_and_after_each_change() {
    let mut peer = Peer::new(&host_at_start());
    peer.call(&initialize("2025-11-25", capabilities())).await;
    assert!(peer.received().await.is_empty(), "nothing is asked before the client is ready");
    peer.send(&note("notifications/initialized", json!({}))).await;
    let asked = peer.receive().await;
    assert_eq!(asked["method"], "roots/list");
    assert!(peer.received().await.is_empty());

    peer.send(&response(&asked, roots(&["file:///a", "file:///b"]))).await;
    for id in 0..3 {
        let answer = peer.exchange(&legacy_tool(id, "list")).await;
        assert_eq!(answer.len(), 1, "nothing is asked again: {answer:?}");
        assert_eq!(tool_text(&answer[0]), "file:///a file:///b");
    }
    // Several changes while the question is open are one question more.
    for _ in 0..5 {
        peer.send(&note(CHANGED, json!({}))).await;
    }
    let asked = peer.received().await;
    assert_eq!(asked.len(), 1, "{asked:?}");
    peer.send(&response(&asked[0], roots(&["file:///old"]))).await;
    let again = peer.received().await;
    assert_eq!(again.len(), 1, "what was answered may be older than the last change: {again:?}");
    peer.send(&response(&again[0], roots(&["file:///new"]))).await;
    assert_eq!(tool_text(&peer.call(&legacy_tool(9, "list")).await), "file:///new");
    assert!(peer.received().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn channel_roots_at_start_are_requested_after_a_batch_with_initialized() {
    let mut peer = Peer::new(&host_at_start());
    peer.call(&initialize("2025-03-26", capabilities())).await;
    let batch = json!([note("notifications/initialized", json!({})), legacy("ping", "ping", json!({}))]);
    peer.send(&batch).await;
    let said = peer.received().await;
    assert!(said.iter().any(|message| message["method"] == "roots/list"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn roots_are_never_requested_from_a_client_without_them() {
    let mut peer = Peer::initialized_with(&host(), "2025-11-25", json!({ "sampling": {} })).await;
    peer.send(&note(CHANGED, json!({}))).await;
    assert!(peer.received().await.is_empty());
    let answer = peer.call(&legacy_tool(1, "list")).await;
    assert!(text(&answer).contains("roots/list"), "{answer}");
    let modern = ModernRequest::tool("list").capabilities(json!({}));
    let answer = Client::new(&host()).post(&modern.value()).await.answer().await;
    assert_eq!(answer["error"]["code"], -32021);
}

#[tokio::test(start_paused = true)]
async fn roots_are_requested_only_by_a_call_that_needs_them() {
    let mut peer = Peer::initialized_with(&host(), "2025-11-25", capabilities()).await;
    assert!(peer.received().await.is_empty(), "not when the session begins");
    for (id, uri) in [(1, "file:///a"), (2, "file:///b")] {
        peer.send(&note(CHANGED, json!({}))).await;
        assert!(peer.received().await.is_empty(), "no call needs them");
        peer.send(&legacy_tool(id, "list")).await;
        let asked = peer.receive().await;
        assert_eq!(asked["method"], "roots/list");
        peer.send(&response(&asked, roots(&[uri]))).await;
        assert_eq!(tool_text(&peer.receive().await), uri);
    }
}

#[tokio::test(start_paused = true)]
async fn call_waits_once_for_a_client_that_never_lists_its_roots() {
    let begun = tokio::time::Instant::now();
    let mut silent = Peer::initialized_with(&host_at_start(), "2025-11-25", capabilities()).await;
    let asked = silent.receive().await;
    assert_eq!(asked["method"], "roots/list");
    assert_eq!(tool_text(&silent.call(&legacy_tool(1, "thrice")).await), "0 false false");
    assert_eq!(begun.elapsed().as_millis(), 500, "once for three uses");
    // Over HTTP without a stream the call sends the request itself, and waits longer.
    let client = Client::new(&host()).initialized_with("2025-11-25", capabilities()).await;
    let begun = tokio::time::Instant::now();
    let answers = client.post(&legacy_tool(1, "thrice")).await.rest().await;
    assert_eq!(answers.iter().filter(|message| message["method"] == "roots/list").count(), 1, "{answers:?}");
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn call_waits_for_a_pending_roots_response_until_its_timeout() {
    let mut peer = Peer::initialized_with(&host_at_start(), "2025-11-25", capabilities()).await;
    let asked = peer.receive().await;
    peer.send(&legacy_tool(1, "list")).await;
    settle().await;
    peer.send(&response(&asked, roots(&["file:///a"]))).await;
    assert_eq!(tool_text(&peer.receive().await), "file:///a");

    let begun = tokio::time::Instant::now();
    let mut silent = Peer::initialized_with(&host_at_start(), "2025-11-25", capabilities()).await;
    let asked = silent.receive().await;
    assert_eq!(tool_text(&silent.call(&legacy_tool(1, "list")).await), "");
    assert!(begun.elapsed().as_millis() <= 600, "{:?}", begun.elapsed());
    // The late response counts for later calls, and a response to no open request is ignored.
    silent.send(&response(&asked, roots(&["file:///late"]))).await;
    silent.send(&json!({ "jsonrpc": "2.0", "id": "trunkline-99", "result": roots(&["file:///x"]) })).await;
    assert_eq!(tool_text(&silent.call(&legacy_tool(2, "list")).await), "file:///late");
}

#[tokio::test(start_paused = true)]
async fn first_http_call_that_needs_roots_requests_them_for_the_session() {
    let client = Client::new(&host()).initialized_with("2025-11-25", capabilities()).await;
    let mut stream = client.post(&legacy_tool(1, "list")).await;
    let asked = stream.message().await.unwrap();
    assert_eq!(asked["method"], "roots/list");
    assert_eq!(client.post(&response(&asked, roots(&["file:///a"]))).await.status, 202);
    assert_eq!(tool_text(&stream.answer().await), "file:///a");
    // From now on they are known, even on a connection without input requests.
    let plain = client.clone().with("accept", JSON_ONLY);
    assert_eq!(tool_text(&plain.post(&legacy_tool(2, "list")).await.answer().await), "file:///a");

    client.post(&note(CHANGED, json!({}))).await;
    let stale = plain.post(&legacy_tool(3, "list")).await.answer().await;
    assert_eq!(tool_text(&stale), "file:///a", "what was known serves those who cannot be asked");
    let mut stream = client.post(&legacy_tool(4, "list")).await;
    let asked = stream.message().await.unwrap();
    client.post(&response(&asked, roots(&["file:///b"]))).await;
    assert_eq!(tool_text(&stream.answer().await), "file:///b");
}

#[tokio::test(start_paused = true)]
async fn roots_request_at_start_is_sent_on_a_standalone_stream() {
    let client = Client::new(&host_at_start()).initialized_with("2025-11-25", capabilities()).await;
    let mut stream = client.get().await;
    let asked = stream.message().await.unwrap();
    assert_eq!(asked["method"], "roots/list");
    client.post(&response(&asked, roots(&["file:///a"]))).await;
    let plain = client.clone().with("accept", JSON_ONLY);
    assert_eq!(tool_text(&plain.post(&legacy_tool(1, "list")).await.answer().await), "file:///a");
    client.post(&note(CHANGED, json!({}))).await;
    let asked = stream.message().await.unwrap();
    client.post(&response(&asked, roots(&["file:///b"]))).await;
    assert_eq!(tool_text(&plain.post(&legacy_tool(2, "list")).await.answer().await), "file:///b");
}

#[tokio::test(start_paused = true)]
async fn http_client_that_refuses_or_ignores_roots_list_has_no_roots() {
    let client = Client::new(&host()).initialized_with("2025-11-25", capabilities()).await;
    let mut stream = client.post(&legacy_tool(1, "list")).await;
    let asked = stream.message().await.unwrap();
    let error = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -32601, "message": "no" } });
    client.post(&error).await;
    assert!(stream.answer().await.to_string().contains("the client refused"));
    let again = client.post(&legacy_tool(2, "list")).await.answer().await;
    assert_eq!(tool_text(&again), "", "it is not asked a second time");

    let silent = Client::new(&host()).initialized_with("2025-11-25", capabilities()).await;
    let mut stream = silent.post(&legacy_tool(1, "list")).await;
    assert_eq!(stream.message().await.unwrap()["method"], "roots/list");
    assert_eq!(tool_text(&stream.answer().await), "");
}

#[tokio::test(start_paused = true)]
async fn call_requests_roots_at_most_once() {
    let host = host();
    let client = Client::new(&host);
    let request = ModernRequest::tool("twice");
    let asked = client.post(&request.value()).await.answer().await;
    assert_eq!(questions(&asked), ["roots"]);
    let next = request.answers(json!({ "roots": roots(&["file:///a", "file:///b"]) })).after(&asked);
    assert_eq!(tool_text(&client.post(&next.value()).await.answer().await), "2 2 2");

    let client = client.initialized_with("2025-11-25", capabilities()).await;
    let mut stream = client.post(&legacy_tool(1, "twice")).await;
    let asked = stream.message().await.unwrap();
    client.post(&response(&asked, roots(&["file:///a"]))).await;
    let rest = stream.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(tool_text(&rest[0]), "1 1 1");
}

#[tokio::test(start_paused = true)]
async fn client_info_roots_count_only_if_enabled() {
    for (client_info_roots, declares, expected) in [
        (false, true, "file:///b file:///a"),
        (true, true, "file:///b file:///a file:///c"),
        (true, false, "file:///a file:///c"),
    ] {
        let options = HostOptions { client_info_roots, roots_at_start: true, ..HostOptions::default() };
        let mut peer = Peer::new(&server().host(options).unwrap());
        let params = json!({
            "protocolVersion": "2025-03-26",
            "capabilities": if declares { capabilities() } else { json!({}) },
            "clientInfo": {
                "name": "c", "version": "1",
                "roots": [{ "uri": "file:///a" }, { "uri": "file:///c" }, { "uri": "file:///a" }],
            },
        });
        peer.call(&legacy(0, "initialize", params)).await;
        peer.send(&note("notifications/initialized", json!({}))).await;
        if declares {
            let asked = peer.receive().await;
            if client_info_roots {
                let early = tool_text(&peer.call(&legacy_tool(1, "list")).await).to_owned();
                assert_eq!(early, "file:///a file:///c", "known before any answer");
            }
            peer.send(&response(&asked, roots(&["file:///b", "file:///a"]))).await;
        }
        assert_eq!(tool_text(&peer.call(&legacy_tool(2, "list")).await), expected, "{client_info_roots}");
        let marked = tool_text(&peer.call(&legacy_tool(3, "marked")).await).to_owned();
        let unasked: Vec<&str> = expected
            .split(' ')
            .filter(|uri| client_info_roots && (!declares || *uri == "file:///c"))
            .collect();
        assert_eq!(marked, unasked.join(" "), "those that nobody asked for");
    }
}
