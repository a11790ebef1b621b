//! The server in a process of its own, over its standard input and output: this test program, started once more.

use trunkline_server::transport::process::{self, Command, ProcessChannel, ProcessOptions, ServerProcess};
use trunkline_server::{ServerLimits, ServerTransport as _, stdio};

use crate::service::host;

/// Marks the process as a server; absent, it is a test program.
const ROLE: &str = "TRUNKLINE_TRANSPORTS_CHILD";

/// Starts the process; it is ended when the second value is dropped. Output of the test program before it serves is
/// skipped.
pub(crate) fn open() -> (ProcessChannel, ServerProcess) {
    let command = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child::serve", "--ignored", "--nocapture", "--test-threads=1"])
        .env(ROLE, "stdio");
    process::spawn(&command, ProcessOptions::default()).unwrap()
}

#[test]
#[ignore = "serves only as the process that other tests start"]
fn serve() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    // Ends the line that the test program has begun.
    println!();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let served = runtime.block_on(async { stdio().serve(host(ServerLimits::default()).0).await });
    // The thread that reads cannot be interrupted.
    runtime.shutdown_background();
    served.unwrap();
}
