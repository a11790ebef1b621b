use std::io::Write as _;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use clap::{Arg, Command, value_parser};
use serde_json::json;
use trunkline_commands::Program;
use trunkline_server::transport::process::RunLimits;

use crate::peer::{LegacyPeer, text};
use crate::support::host;

/// Makes the program; its command `wait` waits until the other end of the channel is gone.
fn program(over: Receiver<()>) -> Program {
    let over = Mutex::new(over);
    let number = |id: &'static str| Arg::new(id).required(true).value_parser(value_parser!(i64));
    let command = Command::new("sums")
        .version("3.2.1")
        .subcommand(Command::new("add").arg(number("a")).arg(number("b")))
        .subcommand(Command::new("fail"))
        .subcommand(Command::new("flood"))
        .subcommand(Command::new("wait"))
        .subcommand(Command::new("panic"));
    Program::new(command).in_process(move |matches, out| match matches.subcommand() {
        Some(("add", matches)) => {
            let number = |id| matches.get_one::<i64>(id).copied().unwrap_or_default();
            writeln!(out.stdout, "{}", number("a") + number("b"))
        }
        Some(("flood", _)) => (0..1000).try_for_each(|_| out.stdout.write_all(&[b'x'; 1000])),
        Some(("wait", _)) => {
            let _ = over.lock().unwrap().recv();
            Ok(())
        }
        Some(("panic", _)) => panic!("this is meant"),
        _ => {
            writeln!(out.stdout, "half")?;
            Err(std::io::Error::other("the other half failed"))
        }
    })
}

#[tokio::test]
async fn in_process_function_runs_the_commands() {
    let (_going_on, over) = channel();
    let limits = RunLimits { stdout_bytes: 100, ..RunLimits::default() };
    let host = host(&program(over).limits(limits));
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    assert_eq!(text(&peer.call("add", json!({ "a": -2, "b": 5 })).await), "3\n");
    assert_eq!(text(&peer.call("--version", json!({})).await), "sums 3.2.1\n");
    let failed = peer.call("fail", json!({})).await;
    assert_eq!(failed["isError"], true);
    assert_eq!(text(&failed), "half\n\nthe other half failed\n`sums fail` exited with code 1");
    let flood = peer.call("flood", json!({})).await;
    let (start, link) = (flood["content"][0]["text"].as_str().unwrap(), &flood["content"][1]);
    assert!(start.ends_with("[999900 more bytes were omitted]"), "{start}");
    let read = peer.request("resources/read", json!({ "uri": link["uri"] })).await;
    assert_eq!(read["result"]["contents"][0]["text"].as_str().unwrap().len(), 1_000_000);
    let panicked = peer.call("panic", json!({})).await;
    assert!(panicked["isError"] == true && text(&panicked).contains("`sums panic` failed"), "{panicked}");
}

#[tokio::test]
async fn in_process_output_lines_are_reported_as_progress() {
    let (_going_on, over) = channel();
    let host = host(&program(over));
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    let asked = json!({ "name": "fail", "arguments": {}, "_meta": { "progressToken": 1 } });
    let messages = peer.exchange("tools/call", asked).await;
    let told: Vec<&str> =
        messages.iter().filter_map(|message| message["params"]["message"].as_str()).collect();
    assert_eq!(told, ["half", "the other half failed"]);
}

#[tokio::test]
async fn in_process_function_timeout_ends_the_wait() {
    let (going_on, over) = channel();
    let host = host(&program(over).timeout(Duration::from_millis(50)));
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    let late = peer.call("wait", json!({})).await;
    assert!(late["isError"] == true && text(&late).contains("timed out after 50ms"), "{late}");
    drop(going_on);
}
