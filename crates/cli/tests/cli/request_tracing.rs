//! The log at the level debug: a request can be followed from its arrival to its answer.

use rustix::process::Signal;
use serde_json::json;

use crate::bare_client::post;
use crate::messages::{call, legacy, modern, parse_lines};
use crate::process::RunningCommand;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[test]
fn every_step_of_a_call_is_logged_under_one_trace() {
    let (running, address) =
        RunningCommand::serve("trail", &["--log-format", "json", "--log-level", "debug"]);
    let mut message = modern(7, "tools/call", call("echo", json!({ "message": "hello" })));
    message["params"]["_meta"]["traceparent"] = json!(format!("00-{TRACE}-b7ad6b7169203331-01"));
    assert_eq!(post(address, &message, &[]).status, 200);
    // One that is refused, and one without a trace, do not get into the way.
    assert_eq!(post(address, &legacy(8, "tools/call", json!({})), &[]).status, 400);
    running.signal(Signal::TERM);
    let log = parse_lines(&running.wait().stderr);
    let traced: Vec<_> = log.iter().filter(|line| line.to_string().contains(TRACE)).collect();
    let steps: Vec<_> = traced.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert_eq!(steps, ["routed", "begins", "ends", "answered"], "{log:#?}");
    let spans = traced[1]["spans"].as_array().unwrap();
    assert_eq!((&spans[0]["name"], &spans[0]["verb"]), (&json!("http"), &json!("POST")));
    assert_eq!((&spans[1]["tool"], &spans[1]["request_id"]), (&json!("echo"), &json!("7")));
    assert_eq!(traced[0]["route"], "modern");
    assert_eq!((&traced[3]["status"], &traced[3]["stream"]), (&json!(200), &json!(false)));
    assert_eq!(log.iter().filter(|line| line["message"] == "received").count(), 2);
}
