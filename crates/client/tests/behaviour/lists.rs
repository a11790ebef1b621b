//! Lists and what is known from them, against servers that page, cycle and mark their arguments.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use trunkline_client::protocol::Revision;
use trunkline_client::transport::ChannelOpener;
use trunkline_client::{Client, ClientLimits, Error};

use crate::support::{ScriptAction, ScriptedPeer, error, or_handshake, within};

const ERAS: [Revision; 2] = [Revision::V2025_06_18, Revision::V2026_07_28];

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

/// A server that answers `tools/list` by a function of the cursor, and everything else with nothing.
fn lister(
    page: impl Fn(Option<&str>) -> ScriptAction + Send + Sync + 'static,
) -> (ScriptedPeer, ChannelOpener) {
    ScriptedPeer::new(move |_, message| {
        or_handshake(message, |message| match message["method"].as_str() {
            Some("tools/list") => page(message["params"].get("cursor").and_then(Value::as_str)),
            _ => ScriptAction::Wait,
        })
    })
}

async fn list(opener: &ChannelOpener, revision: Revision) -> Result<Vec<String>, Error> {
    let limits = ClientLimits { pages: 20, items: 50, ..ClientLimits::default() };
    let client =
        within(Client::builder().pin(revision).limits(limits).connect(opener.clone())).await.unwrap();
    let tools = within(client.tools()).await?;
    Ok(tools.iter().map(|tool| tool.name.clone()).collect())
}

#[tokio::test(start_paused = true)]
async fn all_list_pages_are_read_including_those_with_an_empty_cursor() {
    for revision in ERAS {
        let (script, opener) = lister(|cursor| {
            ScriptAction::Result(match cursor {
                None => json!({ "tools": [tool("a")], "nextCursor": "" }),
                Some("") => json!({ "tools": [], "nextCursor": "x\u{7f}\"" }),
                Some("x\u{7f}\"") => json!({ "tools": [tool("b"), tool("c")] }),
                Some(other) => panic!("{other}"),
            })
        });
        assert_eq!(list(&opener, revision).await.unwrap(), ["a", "b", "c"]);
        assert_eq!(script.methods()[0].iter().filter(|method| *method == "tools/list").count(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn endless_list_pages_are_an_error() {
    let counter = AtomicUsize::new(0);
    let circle = lister(|cursor| {
        let next = if cursor == Some("a") { "b" } else { "a" };
        ScriptAction::Result(json!({ "tools": [], "nextCursor": next }))
    });
    let endless = lister(move |_| {
        ScriptAction::Result(
            json!({ "tools": [], "nextCursor": counter.fetch_add(1, Ordering::SeqCst).to_string() }),
        )
    });
    let huge = lister(|_| {
        ScriptAction::Result(json!({ "tools": (0..51).map(|n| tool(&n.to_string())).collect::<Vec<_>>() }))
    });
    let malformed = lister(|_| ScriptAction::Result(json!({ "tools": [], "nextCursor": 7 })));
    let missing = lister(|_| ScriptAction::Result(json!({})));
    for ((_, opener), expected) in [
        (circle, "in a circle"),
        (endless, "more than 20 pages"),
        (huge, "more than 50 items"),
        (malformed, "`nextCursor` must be a string"),
        (missing, "`tools` is missing"),
    ] {
        for revision in ERAS {
            let error = list(&opener, revision).await.unwrap_err();
            assert!(matches!(&error, Error::Malformed(said) if said.contains(expected)), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rejected_cursor_restarts_the_list_once() {
    for (forgets, expected) in [(1, Ok(2)), (2, Err(()))] {
        let forgotten = AtomicUsize::new(0);
        let (script, opener) = lister(move |cursor| match cursor {
            None => ScriptAction::Result(json!({ "tools": [tool("a")], "nextCursor": "n" })),
            Some(_) if forgotten.fetch_add(1, Ordering::SeqCst) < forgets => error(-32602),
            Some(_) => ScriptAction::Result(json!({ "tools": [tool("b")] })),
        });
        let listed = list(&opener, Revision::NEWEST).await;
        assert_eq!(listed.map(|names| names.len()).map_err(drop), expected);
        assert_eq!(script.methods()[0].iter().filter(|method| *method == "tools/list").count(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn unusable_list_item_is_skipped_and_the_others_are_verbatim() {
    let marked = |kind: &str| {
        json!({ "name": "bad", "inputSchema": { "type": "object",
        "properties": { "p": { "type": kind, "x-mcp-header": "P" } } } })
    };
    let strange = json!({ "name": "strange", "inputSchema": { "type": "object", "$defs": { "x": { "unknownKeyword": [1.0] } },
        "allOf": [{ "$anchor": "a" }] }, "own": { "z": 1 } });
    let page = json!({ "tools": [tool("a"), { "name": "no schema" }, 7, marked("number"), strange] });
    for (revision, left_out) in [(ERAS[0], 1), (ERAS[1], 2)] {
        let page = page.clone();
        let (_, opener) = lister(move |_| ScriptAction::Result(page.clone()));
        let client = within(Client::builder().pin(revision).connect(opener)).await.unwrap();
        let tools = within(client.tools()).await.unwrap();
        assert_eq!(tools.skipped.len(), left_out, "{:?}", tools.skipped);
        assert_eq!(tools.len(), 5 - left_out);
        let [repaired] = &tools.repaired[..] else { panic!("{:?}", tools.repaired) };
        assert_eq!(
            (&*repaired.name, repaired.repairs.to_string()),
            ("no schema", "`inputSchema` is missing".to_owned())
        );
        let last = tools.last().unwrap();
        assert_eq!(last.raw().decode::<Value>().unwrap(), strange);
        assert!(last.input_schema.as_str().contains("[1.0]"));
    }
}

#[tokio::test(start_paused = true)]
async fn too_deeply_nested_list_item_is_skipped() {
    let deep = (0..300).fold(json!({ "type": "object" }), |inner, _| json!({ "not": inner }));
    let page = json!({ "tools": [tool("a"), { "name": "deep", "inputSchema": deep }, tool("b")] });
    for revision in ERAS {
        let page = page.clone();
        let (_, opener) = lister(move |_| ScriptAction::Result(page.clone()));
        let client = within(Client::builder().pin(revision).connect(opener)).await.unwrap();
        let tools = within(client.tools()).await.unwrap();
        assert_eq!(tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["a", "b"], "{revision}");
        let [left_out] = &tools.skipped[..] else { panic!("{:?}", tools.skipped) };
        assert_eq!((&*left_out.name, &*left_out.reason), ("deep", "the value nests deeper than 60 levels"));
    }
}

#[tokio::test(start_paused = true)]
async fn list_is_cached_for_its_shortest_page_ttl_or_until_it_changes() {
    let (script, opener) = lister(|cursor| {
        ScriptAction::Result(match cursor {
            None => {
                json!({ "tools": [tool("a")], "nextCursor": "n", "ttlMs": 60_000, "cacheScope": "public" })
            }
            Some(_) => json!({ "tools": [tool("b")], "ttlMs": 5_000, "cacheScope": "private" }),
        })
    });
    let client = within(Client::builder().pin(Revision::NEWEST).connect(opener)).await.unwrap();
    let lists = || script.methods()[0].iter().filter(|method| *method == "tools/list").count();
    for _ in 0..3 {
        within(client.tools()).await.unwrap();
    }
    assert_eq!(lists(), 2);
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    within(client.tools()).await.unwrap();
    assert_eq!(lists(), 4);
    script.newest().receive(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    crate::support::settle().await;
    within(client.tools()).await.unwrap();
    assert_eq!(lists(), 6);
}

#[tokio::test(start_paused = true)]
async fn tool_result_is_validated_against_its_output_schema() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let described = json!({ "name": "t", "inputSchema": { "type": "object" }, "outputSchema": schema });
    for (result, expected) in [
        (json!({ "content": [], "structuredContent": { "n": 1 } }), None),
        (json!({ "content": [], "structuredContent": { "n": "1" } }), Some("/n")),
        (json!({ "content": [] }), Some("gave none")),
        (json!({ "content": [], "isError": true }), None),
        (json!({ "content": [], "structuredContent": 7, "isError": true }), None),
    ] {
        for revision in ERAS {
            let (described, result) = (described.clone(), result.clone());
            let (_, opener) = ScriptedPeer::new(move |_, message| {
                or_handshake(message, |message| match message["method"].as_str() {
                    Some("tools/list") => ScriptAction::Result(json!({ "tools": [described] })),
                    _ => ScriptAction::Result(result.clone()),
                })
            });
            let client = within(Client::builder().pin(revision).connect(opener)).await.unwrap();
            // What was never listed promises nothing.
            client.call("t", json!({})).await.unwrap();
            client.tools().await.unwrap();
            let said = client.call("t", json!({})).await.err().map(|error| error.to_string());
            assert_eq!(said.is_some(), expected.is_some(), "{said:?}");
            assert!(expected.is_none_or(|expected| said.unwrap().contains(expected)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn header_mismatch_refreshes_tools_and_retries_the_call_once() {
    for (spoilt, calls) in [(1, 2), (2, 2)] {
        let called = AtomicUsize::new(0);
        let (script, opener) = ScriptedPeer::new(move |_, message| {
            or_handshake(message, |message| match message["method"].as_str() {
                Some("tools/list") => ScriptAction::Result(json!({ "tools": [tool("t")] })),
                _ if called.fetch_add(1, Ordering::SeqCst) < spoilt => error(-32020),
                _ => ScriptAction::Result(json!({ "content": [] })),
            })
        });
        let client = within(Client::builder().pin(Revision::NEWEST).connect(opener)).await.unwrap();
        let result = within(client.call("t", json!({})).into_future()).await;
        assert_eq!(result.is_ok(), spoilt == 1);
        let methods = script.methods().remove(0);
        assert_eq!(methods.iter().filter(|method| *method == "tools/call").count(), calls);
        assert_eq!(methods.iter().filter(|method| *method == "tools/list").count(), 1);
    }
}
