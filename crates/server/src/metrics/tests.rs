use serde_json::json;
use trunkline_protocol::RawJson;
use trunkline_transport::Channel as _;

use super::*;
use crate::{Host, HostOptions, Server, Tool, ToolError};

fn server() -> Server {
    Server::new("test")
        .with(Tool::new("add").run(async || 5))
        .with(Tool::new("fails").run(async || Err::<(), _>(ToolError::new("no"))))
        .with(Tool::new("panics").run(async || {
            if true {
                panic!("on purpose");
            }
        }))
}

fn host(metrics: &Metrics) -> Host {
    server().host(HostOptions { metrics: Some(metrics.clone()), ..HostOptions::default() }).unwrap()
}

/// Sends modern requests over a channel and waits for as many answers.
async fn exchange(host: &Host, requests: &[(&str, serde_json::Value)]) {
    let mut channel = host.connect();
    for (at, (method, params)) in requests.iter().enumerate() {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        channel.send(&json!({ "jsonrpc": "2.0", "id": at, "method": method, "params": params }).to_string());
    }
    for _ in requests {
        std::future::poll_fn(|cx| {
            let _ = channel.poll_flush(cx);
            channel.poll_receive(cx)
        })
        .await
        .unwrap()
        .unwrap();
    }
}

fn value(text: &str, sample: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {sample} in {text}")).parse().unwrap()
}

#[tokio::test]
async fn calls_are_counted_by_method_tool_outcome_and_revision() {
    let metrics = Metrics::new();
    let host = host(&metrics);
    let calls = [
        ("tools/call", json!({ "name": "add" })),
        ("tools/call", json!({ "name": "add" })),
        ("tools/call", json!({ "name": "fails" })),
        ("tools/call", json!({ "name": "panics" })),
        ("tools/call", json!({ "name": "no such tool" })),
        ("tools/list", json!({})),
    ];
    exchange(&host, &calls).await;
    let text = metrics.text();
    for (sample, expected) in [
        (
            r#"mcp_server_operation_duration_seconds_bucket{mcp_method_name="tools/call",gen_ai_tool_name="add",le="+Inf"}"#,
            2,
        ),
        (r#"mcp_server_operation_duration_seconds_count{mcp_method_name="tools/list"}"#, 1),
        (
            r#"mcp_server_operations_total{mcp_method_name="tools/call",gen_ai_tool_name="add",outcome="ok"}"#,
            2,
        ),
        (
            r#"mcp_server_operations_total{mcp_method_name="tools/call",gen_ai_tool_name="fails",outcome="tool_error"}"#,
            1,
        ),
        (
            r#"mcp_server_operations_total{mcp_method_name="tools/call",gen_ai_tool_name="panics",outcome="panicked"}"#,
            1,
        ),
        (
            r#"mcp_server_operations_total{mcp_method_name="tools/call",gen_ai_tool_name="other",outcome="refused"}"#,
            1,
        ),
        (r#"mcp_server_requests_total{mcp_protocol_version="2026-07-28"}"#, 6),
        (r#"mcp_server_requests_total{mcp_protocol_version="2024-11-05"}"#, 0),
        ("mcp_server_calls_running", 0),
        ("mcp_server_calls_suspended", 0),
    ] {
        assert_eq!(value(&text, sample), expected, "{sample}");
    }
    // These are counted for the whole process, in which other tests run too.
    assert!(value(&text, "mcp_server_panics_total") >= 1);
    assert!(value(&text, r#"mcp_server_refusals_total{refusal="INVALID_PARAMS"}"#) >= 1);
}

#[tokio::test]
async fn refused_retry_counts_as_refused() {
    let metrics = Metrics::new();
    let host = host(&metrics);
    let calls = [
        ("tools/call", json!({ "name": "add", "requestState": "nobody made this" })),
        ("tools/call", json!({ "name": "add", "requestState": 7 })),
        ("tools/call", json!({ "name": "add", "inputResponses": [] })),
    ];
    exchange(&host, &calls).await;
    let of = |outcome: &str| {
        format!(
            r#"mcp_server_operations_total{{mcp_method_name="tools/call",gen_ai_tool_name="add",outcome="{outcome}"}}"#
        )
    };
    let text = metrics.text();
    assert_eq!(value(&text, &of("refused")), 3);
    assert!(!text.contains(&of("cancelled")), "{text}");
}

#[test]
fn unknown_tool_names_create_no_metric_series() {
    let metrics = Metrics::new();
    let handle = server().handle().unwrap();
    let lines = || metrics.text().lines().count();
    let call = |name: &str| {
        let params = RawJson::from(&json!({ "name": name })).members().unwrap();
        let params = Params { members: params, meta: None };
        metrics.start_call(&handle, Method::ToolsCall, &params, Revision::NEWEST).end(MetricOutcome::Refused);
    };
    call("x");
    let before = lines();
    (0..10_000).for_each(|n| call(&format!("tool-{n}\n{{")));
    assert_eq!(lines(), before);
    assert!(!metrics.text().contains("tool-"));
}

#[test]
fn dropped_call_counts_as_cancelled() {
    let metrics = Metrics::new();
    let handle = server().handle().unwrap();
    let params = Params { members: trunkline_protocol::JsonObject::new(), meta: None };
    drop(metrics.start_call(&handle, Method::PromptsGet, &params, Revision::NEWEST));
    let sample = r#"mcp_server_operations_total{mcp_method_name="prompts/get",outcome="cancelled"}"#;
    assert_eq!(value(&metrics.text(), sample), 1);
}
