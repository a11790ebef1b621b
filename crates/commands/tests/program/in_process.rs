use std::io::Write as _;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use clap::{Arg, Command, value_parser};
use serde_json::json;
use trunkline_commands::Program;
use trunkline_server::transport::process::RunLimits;

use crate::peer::{Peer, text};
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
async fn a_function_of_this_process_runs_the_commands() {
    let (_going_on, over) = channel();
    let limits = RunLimits { stdout_bytes: 100, ..RunLimits::default() };
    let host = host(&program(over).limits(limits));
    let mut peer = Peer::legacy(&host, json!({})).await;
    assert_eq!(text(&peer.call("add", json!({ "a": -2, "b": 5 })).await), "3\n");
    assert_eq!(text(&peer.call("--version", json!({})).await), "sums 3.2.1\n");
    let failed = peer.call("fail", json!({})).await;
    assert_eq!(failed["isError"], true);
    assert_eq!(text(&failed), "half\n\nthe other half failed\n`sums fail` exited with code 1");
    let flood = text(&peer.call("flood", json!({})).await);
    assert!(flood.ends_with("[999900 more bytes were left out here]"), "{flood}");
    let panicked = peer.call("panic", json!({})).await;
    assert!(panicked["isError"] == true && text(&panicked).contains("`sums panic` failed"), "{panicked}");
}

#[tokio::test]
async fn a_function_that_takes_too_long_is_not_waited_for() {
    let (going_on, over) = channel();
    let host = host(&program(over).timeout(Duration::from_millis(50)));
    let mut peer = Peer::legacy(&host, json!({})).await;
    let late = peer.call("wait", json!({})).await;
    assert!(late["isError"] == true && text(&late).contains("timed out after 50ms"), "{late}");
    drop(going_on);
}
