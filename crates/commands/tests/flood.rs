//! A flood of output costs at most its limit. Alone in its process, since it looks at the memory of that.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use clap::{Arg, Command};
use serde_json::json;
use trunkline_commands::Program;
use trunkline_server::transport::process::RunLimits;

const GIB: u64 = 1 << 30;

/// Returns the most memory that this process has had at once, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn gibibyte_of_command_output_uses_no_more_memory_than_its_limit() {
    let command =
        Command::new("head").arg(Arg::new("bytes").long("bytes").required(true)).arg(Arg::new("file"));
    let limits = RunLimits { stdout_bytes: 1 << 20, timeout: None, ..RunLimits::default() };
    let server = Program::new(command).executable("head").limits(limits).server().unwrap();
    let small = server.call("head", json!({ "bytes": "1000", "file": "/dev/zero" })).await.unwrap();
    assert!(!small.is_error, "{small:?}");
    let before = peak();
    let flood = server.call("head", json!({ "bytes": GIB.to_string(), "file": "/dev/zero" })).await.unwrap();
    let text = flood.content.first().unwrap().as_text().unwrap();
    assert!(text.ends_with(&format!("[{} more bytes were omitted]", GIB - (1 << 20))), "{}", text.len());
    assert_eq!(text.split_once('\n').unwrap().0.len(), 1 << 20);
    let grown = peak() - before;
    // What is kept, its copies as text, and what reading takes.
    assert!(grown < 16 << 20, "{grown} bytes");
}
