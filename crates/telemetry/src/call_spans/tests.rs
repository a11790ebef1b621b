use serde_json::{Value, json};

use super::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Applies events, one each millisecond, and returns the spans and metrics.
fn applied(bodies: &[Value]) -> (Vec<SpanRecord>, CallMetrics, CallSpans) {
    let (mut spans, mut calls, mut metrics) = (Vec::new(), CallSpans::default(), CallMetrics::new(0));
    for (seq, body) in bodies.iter().enumerate() {
        let mut line = json!({ "seq": seq, "time": format!("2026-11-18T09:00:00.{seq:03}Z") });
        line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let event = HubEvent::parse(&line.to_string()).unwrap();
        calls.apply(&event, &mut metrics, &mut |span| spans.push(span));
    }
    (spans, metrics, calls)
}

fn started(call: &str) -> Value {
    json!({
        "kind": "call_started", "call": call, "client": "0a1b2c3d", "client_name": "cursor", "method": "tools/call",
        "name": "git__log", "server": "git", "item": "log",
    })
}

fn traced(call: &str, revision: &str) -> Value {
    json!({
        "kind": "call_traced", "call": call, "trace": TRACE, "span": "00000000000000aa", "parent": "b7ad6b7169203331",
        "state": "v=1", "sampled": true, "request": "7", "revision": revision, "transport": "http", "address": "10.0.0.7",
    })
}

fn served(call: &str, span: &str, outcome: &str) -> Value {
    json!({
        "kind": "server_call", "call": call, "server": "git", "method": "tools/call", "item": "log", "span": span,
        "outcome": outcome, "micros": 1000, "revision": "2025-11-25", "transport": "stdio",
    })
}

fn ended(call: &str, outcome: &str, code: Option<i64>) -> Value {
    json!({
        "kind": "call_ended", "call": call, "outcome": outcome, "micros": 2000, "bytes_in": 1, "bytes_out": 2,
        "error": "the argument sentinel is wrong", "code": code,
    })
}

#[test]
fn call_becomes_a_server_span_with_a_client_span_below_it() {
    let (spans, metrics, _) = applied(&[
        started("c1"),
        traced("c1", "2026-07-28"),
        served("c1", "00000000000000bb", "ok"),
        ended("c1", "ok", None),
    ]);
    let [client, server] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((client.role, server.role), (SpanRole::Client, SpanRole::Server));
    assert_eq!((client.trace, server.trace), (server.trace, u128::from_str_radix(TRACE, 16).unwrap()));
    assert_eq!((client.span, client.parent), (0xbb, Some(0xaa)));
    assert_eq!((server.span, server.parent), (0xaa, Some(0xb7ad_6b71_6920_3331)));
    assert_eq!((client.name.as_str(), server.name.as_str()), ("tools/call log", "tools/call git__log"));
    assert_eq!((client.ended_at - client.started_at, server.ended_at - server.started_at), (1000, 3000));
    for (key, of_client, of_server) in [
        ("mcp.method.name", Some("tools/call"), Some("tools/call")),
        ("gen_ai.operation.name", Some("execute_tool"), Some("execute_tool")),
        ("gen_ai.tool.name", Some("log"), Some("git__log")),
        ("mcp.protocol.version", Some("2025-11-25"), Some("2026-07-28")),
        ("network.transport", Some("pipe"), Some("tcp")),
        ("network.protocol.name", None, Some("http")),
        ("jsonrpc.request.id", None, Some("7")),
        ("mcp.session.id", None, Some("0a1b2c3d")),
        ("client.address", None, Some("10.0.0.7")),
        ("trunkline.server", Some("git"), Some("git")),
        ("trunkline.client", None, Some("cursor")),
        ("error.type", None, None),
        ("rpc.response.status_code", None, None),
    ] {
        assert_eq!((client.attributes.get(key), server.attributes.get(key)), (of_client, of_server), "{key}");
    }
    assert!(!client.is_error && !server.is_error && server.state.as_deref() == Some("v=1"));
    for (metric, most) in [(DurationMetric::ServerOperation, 0.003), (DurationMetric::ClientOperation, 0.001)]
    {
        let found: Vec<_> = metrics.series(metric).map(|(_, found)| (found.count(), found.max())).collect();
        assert_eq!(found, [(1, most)], "{metric:?}");
    }
}

#[test]
fn failures_are_marked_by_the_conventions() {
    for (outcome, code, error_type, status) in [
        ("ok", None, None, None),
        ("input_required", None, None, None),
        ("tool_error", None, Some("tool_error"), None),
        ("cancelled", None, Some("cancelled"), None),
        ("error", Some(-32603), Some("-32603"), Some("-32603")),
        ("error", Some(-32000), Some("-32000"), Some("-32000")),
        // The request is wrong, and not the hub.
        ("error", Some(-32602), None, Some("-32602")),
        ("error", None, Some("_OTHER"), None),
    ] {
        let (spans, ..) = applied(&[started("c1"), traced("c1", "2026-07-28"), ended("c1", outcome, code)]);
        let server = &spans[0];
        assert_eq!(server.attributes.get("error.type"), error_type, "{outcome} {code:?}");
        assert_eq!(server.attributes.get("rpc.response.status_code"), status, "{outcome} {code:?}");
        assert_eq!(server.is_error, error_type.is_some(), "{outcome} {code:?}");
    }
    // Every error is one of the server that answered it.
    for (member, value, error_type) in [
        ("code", json!(-32602), "-32602"),
        ("failure", json!("timeout"), "timeout"),
        ("x", json!(1), "_OTHER"),
    ] {
        let mut failed = served("c1", "00000000000000bb", "error");
        failed[member] = value;
        let (spans, ..) = applied(&[started("c1"), traced("c1", "2026-07-28"), failed]);
        assert_eq!(spans[0].attributes.get("error.type"), Some(error_type));
        assert!(spans[0].is_error);
    }
}

#[test]
fn legacy_request_that_waits_for_input_is_one_span() {
    let input =
        |kind: &str| json!({ "kind": kind, "call": "c1", "method": "elicitation/create", "key": "k" });
    let rounds = |revision: &str| {
        let (spans, metrics, calls) = applied(&[
            started("c1"),
            traced("c1", revision),
            served("c1", "00000000000000bb", "input_required"),
            input("input_requested"),
            ended("c1", "input_required", None),
            started("c1"),
            traced("c1", revision),
            input("input_answered"),
            served("c1", "00000000000000cc", "ok"),
            ended("c1", "ok", None),
        ]);
        assert!(calls.open.is_empty() && calls.suspended.is_empty());
        let count: u64 =
            metrics.series(DurationMetric::ServerOperation).map(|(_, found)| found.count()).sum();
        (spans, count)
    };
    let (spans, count) = rounds("2025-06-18");
    let [first, second, server] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((first.parent, second.parent, count), (Some(server.span), Some(server.span), 1));
    let events: Vec<_> =
        server.events.iter().map(|event| (event.name, event.attributes.get("mcp.method.name"))).collect();
    let method = Some("elicitation/create");
    assert_eq!(events, [("input_requested", method), ("input_answered", method)]);
    assert_eq!(server.ended_at - server.started_at, 9000);
    // A modern client sends two requests.
    let (spans, count) = rounds("2026-07-28");
    assert_eq!((spans.len(), count), (4, 2));
}

#[test]
fn spans_contain_no_content_of_calls() {
    let mut read = started("c1");
    (read["method"], read["name"]) = (json!("resources/read"), json!("https://a/b?token=sentinel#sentinel"));
    let mut served = served("c1", "00000000000000bb", "error");
    (served["method"], served["item"]) = (json!("resources/read"), json!("https://a/b?token=sentinel"));
    let (spans, metrics, _) =
        applied(&[read, traced("c1", "2025-11-25"), served, ended("c1", "error", Some(-32603))]);
    assert_eq!(spans.len(), 2);
    let shown = format!("{spans:?} {metrics:?}");
    assert!(!shown.contains("sentinel"), "{shown}");
    for span in &spans {
        assert_eq!(
            (span.name.as_str(), span.attributes.get("mcp.resource.uri")),
            ("resources/read", Some("https://a/b"))
        );
    }
}

#[test]
fn calls_that_are_not_sampled_count_in_metrics_only() {
    let mut trace = traced("c1", "2025-11-25");
    trace["sampled"] = json!(false);
    let (spans, metrics, _) =
        applied(&[started("c1"), trace, served("c1", "00000000000000bb", "ok"), ended("c1", "ok", None)]);
    assert!(spans.is_empty());
    assert_eq!(metrics.series(DurationMetric::ServerOperation).count(), 1);
    assert_eq!(metrics.series(DurationMetric::ClientOperation).count(), 1);
}

#[test]
fn sessions_and_lost_events_are_counted() {
    let client = |kind: &str| json!({ "kind": kind, "client": "0a", "principal": "ann", "revision": "2025-06-18", "transport": "websocket" });
    let server = |kind: &str| json!({ "kind": kind, "server": "git", "connection": 3, "revision": "2025-11-25", "transport": "stdio" });
    let (_, metrics, calls) = applied(&[
        client("client_connected"),
        server("server_connected"),
        json!({ "kind": "dropped", "count": 5 }),
        client("client_gone"),
        server("server_gone"),
        client("client_gone"),
    ]);
    for metric in [DurationMetric::ServerSession, DurationMetric::ClientSession] {
        let found: Vec<_> = metrics
            .series(metric)
            .map(|(with, found)| (with.get("network.transport"), found.max()))
            .collect();
        let expected = if metric == DurationMetric::ServerSession { "tcp" } else { "pipe" };
        assert_eq!(found, [(Some(expected), 0.003)], "{metric:?}");
    }
    assert!(calls.sessions.is_empty());
    assert_eq!(metrics.dropped().last(), Some(("events_lost", 5)));
}

#[test]
fn followed_calls_are_bounded() {
    let (mut calls, mut metrics) = (CallSpans::default(), CallMetrics::new(0));
    let mut spans = 0;
    for number in 0..6_000 {
        for body in [
            started(&format!("c{number}")),
            traced(&format!("c{number}"), "2025-06-18"),
            ended(&format!("c{number}"), "input_required", None),
        ] {
            let mut line = json!({ "seq": number, "time": "2026-11-18T09:00:00Z" });
            line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            calls.apply(&HubEvent::parse(&line.to_string()).unwrap(), &mut metrics, &mut |_| spans += 1);
        }
    }
    assert_eq!((calls.open.len(), calls.suspended.len()), (MAX_SUSPENDED, MAX_SUSPENDED));
    assert_eq!(spans, 6_000 - MAX_SUSPENDED);
    for number in 30_000..50_000 {
        calls.begin(
            &CallStartEvent {
                call: format!("c{number}"),
                client: None,
                client_name: None,
                method: String::new(),
                name: None,
                server: String::new(),
                item: None,
            },
            0,
            &mut metrics,
        );
    }
    assert_eq!(calls.open.len(), MAX_OPEN_CALLS);
}

#[test]
fn calls_and_sessions_whose_end_was_lost_make_room_for_new_ones() {
    let (mut calls, mut metrics) = (CallSpans::default(), CallMetrics::new(0));
    let mut spans = 0;
    let mut apply = |calls: &mut CallSpans, second: u32, body: Value| {
        let mut line = json!({ "seq": 1, "time": format!("2026-11-18T09:00:{second:02}Z") });
        line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        calls.apply(&HubEvent::parse(&line.to_string()).unwrap(), &mut metrics, &mut |_| spans += 1);
    };
    for number in 0..MAX_OPEN_CALLS {
        apply(&mut calls, 0, started(&format!("c{number}")));
    }
    apply(&mut calls, 1, json!({ "kind": "dropped", "count": MAX_OPEN_CALLS }));
    for body in [started("new"), traced("new", "2026-07-28"), ended("new", "ok", None)] {
        apply(&mut calls, 2, body);
    }
    assert_eq!((calls.open.len(), spans), (0, 1));
}
