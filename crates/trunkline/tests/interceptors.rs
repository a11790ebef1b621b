//! The example of interceptors works as its page describes.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

#[path = "../../../examples/interceptors.rs"]
#[expect(dead_code, reason = "its `main` is for those who run it")]
mod example;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn interceptor_example_redacts_results_and_audits_calls() {
    let log = Log::default();
    let server = example::server(log.clone());
    let result = server.call("lookup", serde_json::json!({})).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("it is [redacted]"));
    assert!(server.call("my secret", serde_json::json!({})).await.is_err());
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let lines: Vec<_> = log.lines().collect();
    assert!(lines[0].starts_with("process tools/call lookup done "), "{log}");
    assert!(lines[1].starts_with("process tools/call INVALID_PARAMS "), "{log}");
    assert!(!log.contains("secret"), "{log}");
}
