//! Metrics: which endpoints have them, and their values.

use rustix::process::Signal;
use serde_json::json;

use crate::bare_client::{get, post, send};
use crate::messages::{call, initialize, modern};
use crate::process::{RunningCommand, file, folder};

#[test]
fn loopback_metrics_count_the_calls() {
    let (_running, address) = RunningCommand::serve("metrics", &[]);
    let echo = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    assert_eq!(post(address, &echo, &[]).status, 200);
    let unknown = modern(2, "tools/call", call("chosen-by-a-caller", json!({})));
    assert_eq!(post(address, &unknown, &[]).status, 200);
    assert_eq!(post(address, &initialize(), &[]).status, 200);
    let metrics = get(address, "/metrics", &[]);
    assert_eq!(metrics.status, 200);
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for line in [
        r#"mcp_server_operation_duration_seconds_bucket{mcp_method_name="tools/call",gen_ai_tool_name="echo",le="+Inf"} 1"#,
        r#"mcp_server_operations_total{mcp_method_name="tools/call",gen_ai_tool_name="echo",outcome="ok"} 1"#,
        r#"mcp_server_operations_total{mcp_method_name="tools/call",gen_ai_tool_name="other",outcome="refused"} 1"#,
        r#"mcp_server_requests_total{mcp_protocol_version="2026-07-28"} 2"#,
        r#"mcp_server_refusals_total{refusal="INVALID_PARAMS"} 1"#,
        "mcp_server_sessions 1",
        r#"mcp_server_stored_sessions{store="memory"} 1"#,
        "mcp_server_calls_running 0",
        "mcp_server_panics_total 0",
        "trunkline_log_lines_suppressed_total 0",
        "trunkline_audit_lines_lost_total 0",
        r#"trunkline_upstream_items_total{kind="list_refused"} 0"#,
    ] {
        assert!(metrics.body.lines().any(|there| there == line), "{line} is not in {}", metrics.body);
    }
    assert!(!metrics.body.contains("chosen-by-a-caller"));
    assert_eq!(get(address, "/metrics", &[("Origin", "http://evil.example")]).status, 403);
    assert_eq!(get(address, "/metrics", &[("Host", "evil.example")]).status, 403);
}

#[test]
fn non_loopback_metrics_and_reasons_are_only_on_the_admin_address() {
    let folder = folder("admin");
    let tokens = file(&folder, "tokens", "ann 0123456789abcdef\n", 0o600);
    let auth = format!("bearer:{tokens}");
    let port_file = folder.join("address");
    let mut running = RunningCommand::start(&[
        "serve",
        "--http",
        "0.0.0.0:0",
        "--auth",
        &auth,
        "--admin",
        "127.0.0.1:0",
        "--port-file",
        port_file.to_str().unwrap(),
        "--log-format",
        "json",
        "--drain-delay",
        "20s",
    ]);
    let told: serde_json::Value = serde_json::from_str(&running.wait_for("metrics on ")).unwrap();
    let admin = told["message"]
        .as_str()
        .and_then(|words| words.strip_prefix("metrics on http://")?.strip_suffix("/metrics"));
    let admin = admin.unwrap().parse().unwrap();
    running.wait_for("ready");
    let public = std::fs::read_to_string(&port_file).unwrap().replace("0.0.0.0", "127.0.0.1");
    let public = public.trim_end().parse().unwrap();

    assert_eq!(get(public, "/metrics", &[]).status, 404);
    assert_eq!(get(public, "/healthz", &[]).status, 200);
    assert_eq!(get(admin, "/metrics", &[]).status, 200);
    assert_eq!(get(admin, "/healthz", &[]).status, 200);
    assert_eq!(get(admin, "/readyz", &[]).json(), json!({ "ready": true }));
    assert_eq!(get(admin, "/metrics", &[("Host", "evil.example")]).status, 403);
    let echo = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    let token = [("Authorization", "Bearer 0123456789abcdef")];
    assert_eq!(post(admin, &echo, &token).status, 404, "the endpoint is not there");
    assert_eq!(post(public, &echo, &token).status, 200);
    assert_eq!(send(admin, "POST /metrics", &[], "").status, 405);

    running.signal(Signal::TERM);
    running.wait_for("shutting down");
    assert_eq!(get(public, "/readyz", &[]).json(), json!({ "ready": false }));
    assert_eq!(get(admin, "/readyz", &[]).json(), json!({ "ready": false, "reason": "shutting down" }));
}

#[test]
fn non_loopback_metrics_require_auth() {
    let folder = folder("admin_elsewhere");
    let auth = format!("bearer:{}", file(&folder, "tokens", "ann 0123456789abcdef\n", 0o600));
    for (args, status) in [(&["--auth", &auth][..], 401), (&["--insecure-no-auth"], 200)] {
        let mut running = RunningCommand::start(
            &[&["serve", "--http", ":0", "--admin", "0.0.0.0:0", "--log-format", "json"], args].concat(),
        );
        if status == 200 {
            running.wait_for("need no authentication");
        }
        let told: serde_json::Value = serde_json::from_str(&running.wait_for("metrics on ")).unwrap();
        let admin = told["message"].as_str().unwrap().replace("0.0.0.0", "127.0.0.1");
        let admin = admin.strip_prefix("metrics on http://").and_then(|rest| rest.strip_suffix("/metrics"));
        let admin = admin.unwrap().parse().unwrap();
        for path in ["/metrics", "/readyz", "/healthz"] {
            assert_eq!(get(admin, path, &[]).status, status, "{args:?} {path}");
            assert_eq!(
                get(admin, path, &[("Authorization", "Bearer 0123456789abcdef")]).status,
                200,
                "{path}"
            );
        }
    }
}

#[test]
fn proxied_loopback_hides_metrics_and_reasons() {
    let folder = folder("proxied");
    let auth = format!("bearer:{}", file(&folder, "tokens", "ann 0123456789abcdef\n", 0o600));
    for (test, args) in
        [("proxied_host", ["--allow-host", "public.example"]), ("proxied_auth", ["--auth", &auth])]
    {
        let (mut running, address) =
            RunningCommand::serve(test, &[&args[..], &["--drain-delay", "20s"]].concat());
        assert_eq!(get(address, "/metrics", &[]).status, 404, "{args:?}");
        assert_eq!(get(address, "/healthz", &[]).status, 200);
        running.signal(Signal::TERM);
        running.wait_for("shutting down");
        assert_eq!(get(address, "/readyz", &[]).json(), json!({ "ready": false }), "{args:?}");
    }
}

#[test]
fn admin_address_in_use_hints_at_the_admin_option() {
    let (_running, address) = RunningCommand::serve("taken", &[]);
    let second =
        RunningCommand::start(&["serve", "--http", "127.0.0.1:0", "--admin", &address.to_string()]).wait();
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.stderr.contains("use another port with `--admin :PORT`"), "{}", second.stderr);
}
