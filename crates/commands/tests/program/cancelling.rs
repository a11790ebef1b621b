use std::path::Path;

use serde_json::json;
use trunkline_server::transport::process;

use crate::peer::LegacyPeer;
use crate::support::{DEADLINE, host, program};

/// Returns the processes that have a variable in their environment.
fn marked(mark: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let marked = processes.filter(|path| {
        let environment = std::fs::read(path.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    });
    marked.map(|path: std::path::PathBuf| command_line(&path)).collect()
}

fn command_line(process: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(process.join("cmdline")).unwrap_or_default()).replace('\0', " ")
}

/// Each of them has a child of its own, which would live for a day.
#[tokio::test(flavor = "multi_thread")]
async fn thousand_cancelled_command_calls_leave_no_process() {
    let mark = format!("TRUNKLINE_TEST_MARK=cancel-{}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let host = host(&program().env(name, value));
    let mut peer = LegacyPeer::legacy(&host, json!({})).await;
    let mut seen = 0;
    for turn in 0..50 {
        let mut open = Vec::new();
        for at in 0..20 {
            let token = json!({ "progressToken": at });
            let call = json!({ "name": "debug_wait", "arguments": {}, "_meta": token });
            open.push(peer.begin("tools/call", call).await);
        }
        // In every other turn the commands have not even begun when they are cancelled.
        let begun = if turn % 2 == 0 { open.len() } else { 0 };
        for _ in 0..begun {
            let told = peer.receive().await;
            assert_eq!(told["params"]["message"], "waiting", "{told}");
            seen += 1;
        }
        for id in open {
            let params = json!({ "requestId": id, "reason": "test" });
            peer.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
                .await;
        }
        // A pair of requests goes through after what was cancelled before it; progress that was under way may still come.
        peer.request("tools/list", json!({})).await;
    }
    assert!(seen >= 500, "{seen}");
    tokio::time::timeout(DEADLINE, process::wait_for_background_exits())
        .await
        .expect("everything that is being ended ends");
    assert_eq!(marked(&mark), Vec::<String>::new());
}
