//! The log at the level debug: a request can be followed from its arrival to its answer.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bare_client::{RawConnection, post, request, send};
use crate::messages::{call, initialize, initialized, legacy, lines, modern, parse_lines};
use crate::process::{RunningCommand, run};

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

/// Returns the steps of the call of `echo`, after checking that all of them have one trace and that no other line has it.
#[track_caller]
fn steps_of_echo(log: &[Value]) -> Vec<&str> {
    let trace = |line: &Value| {
        let spans = line["spans"].as_array().into_iter().flatten();
        let traces: Vec<String> =
            spans.filter_map(|span| Some(span["trace_id"].as_str()?.to_owned())).collect();
        assert!(traces.windows(2).all(|pair| pair[0] == pair[1]), "{line}");
        traces.into_iter().next()
    };
    let is_echo = |line: &&Value| line["spans"].to_string().contains("\"tool\":\"echo\"");
    let own = trace(log.iter().find(is_echo).expect("a line of the tool")).expect("a trace of our own");
    assert_eq!(own.len(), 32, "{own}");
    let steps = log.iter().filter(|line| trace(line).as_ref() == Some(&own));
    steps.map(|line| line["message"].as_str().unwrap()).collect()
}

#[test]
fn requests_without_a_trace_get_one_over_every_transport() {
    let debug = ["--log-format", "json", "--log-level", "debug"];
    let echo = call("echo", json!({ "message": "hello" }));
    // Streamable HTTP.
    let (running, address) = RunningCommand::serve("own_trace", &debug);
    assert_eq!(post(address, &modern(7, "tools/call", echo.clone()), &[]).status, 200);
    running.signal(Signal::TERM);
    let log = parse_lines(&running.wait().stderr);
    assert_eq!(steps_of_echo(&log), ["routed", "begins", "ends", "answered"], "{log:#?}");
    // HTTP+SSE: the request is accepted, and answered on the stream.
    let (running, address) = RunningCommand::serve("own_trace_sse", &debug);
    let mut stream = RawConnection::open(address);
    stream.write(&request(address, "GET /sse", &[("Accept", "text/event-stream")], ""));
    let opened = stream.read_until("data: /");
    let path = opened.split("data: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    for message in [initialize(), initialized(), legacy(7, "tools/call", echo.clone())] {
        assert_eq!(send(address, &format!("POST {path}"), &[], &message.to_string()).status, 202);
    }
    stream.read_until("\"id\":7");
    running.signal(Signal::TERM);
    let log = parse_lines(&running.wait().stderr);
    let mut steps = steps_of_echo(&log);
    // The stream may answer before the request is accepted.
    steps.sort_unstable();
    assert_eq!(steps, ["answered", "answered", "begins", "ends", "received"], "{log:#?}");
    // Pipes.
    let words: Vec<&str> = ["serve", "--stdio", "--no-config"].into_iter().chain(debug).collect();
    let piped = run(&words, &lines(&[initialize(), initialized(), legacy(7, "tools/call", echo)]));
    let log = parse_lines(&piped.stderr);
    assert_eq!(steps_of_echo(&log), ["received", "begins", "ends", "answered"], "{log:#?}");
}
