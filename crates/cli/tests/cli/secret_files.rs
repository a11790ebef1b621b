//! Tokens, certificates and state keys of a running server: they are replaced without a restart.

use std::net::SocketAddr;
use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use crate::bare_client::{RawConnection, get, post, request, send};
use crate::messages::{call, legacy, modern};
use crate::process::{RunningCommand, file, folder, run, run_with};

/// Replaces a file in one step, as a careful program does.
fn replace(folder: &Path, name: &str, content: &str) {
    file(folder, "new", content, 0o600);
    std::fs::rename(folder.join("new"), folder.join(name)).unwrap();
}

fn echo_status(address: SocketAddr, token: &str) -> u16 {
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    post(address, &message, &[("Authorization", &format!("Bearer {token}"))]).status
}

/// Opens a stream of HTTP+SSE; returns it with the path to post to.
fn open_stream(address: SocketAddr, token: &str) -> (RawConnection, String) {
    let mut stream = RawConnection::open(address);
    stream.write(&request(address, "GET /sse", &[("Authorization", &format!("Bearer {token}"))], ""));
    stream.read_until("sessionId=");
    let seen = stream.read_until("\n\n\r\n");
    let path = seen.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    (stream, path)
}

const ANN: &str = "ann-token-0123456789";
const BOB: &str = "bob-token-0123456789";

#[test]
fn removed_token_is_refused_and_its_streams_end_without_a_restart() {
    let folder = folder("tokens_reloaded");
    let tokens = file(&folder, "tokens", &format!("ann {ANN}\nbob {BOB}\n"), 0o600);
    let auth = format!("bearer:{tokens}");
    let (mut running, address) = RunningCommand::serve("tokens_reloaded_served", &["--auth", &auth]);
    let ((mut ann, _), (mut bob, messages)) = (open_stream(address, ANN), open_stream(address, BOB));
    replace(&folder, "tokens", &format!("bob {BOB}\neve eve-token-0123456789\n"));
    running.wait_for("reloaded tokens: 1 added, 1 removed");
    assert!(ann.read_to_end().ends_with("0\r\n\r\n"), "the stream is complete: {}", ann.seen());
    assert_eq!((echo_status(address, ANN), echo_status(address, BOB)), (401, 200));
    assert_eq!(echo_status(address, "eve-token-0123456789"), 200);
    // A file that cannot be used changes nothing, and is logged once for each problem.
    for (content, problem) in [("bob short", "line 1"), ("", "holds no token")] {
        replace(&folder, "tokens", content);
        let line = running.wait_for("cannot reload tokens, keeping the previous ones");
        assert!(line.contains(problem) && !line.contains("short"), "{line}");
        assert_eq!(echo_status(address, BOB), 200);
    }
    replace(&folder, "tokens", &format!("bob {BOB}\n"));
    running.wait_for("reloaded tokens: 0 added, 1 removed");
    running.signal(Signal::HUP);
    running.wait_for("reloaded tokens: no change");
    let ping = legacy(9, "ping", json!({})).to_string();
    let authorization = [("Authorization", &*format!("Bearer {BOB}"))];
    assert_eq!(send(address, &format!("POST {messages}"), &authorization, &ping).status, 202);
    bob.read_until(r#""id":9"#);
}

#[test]
fn renewed_certificate_is_served_without_a_restart() {
    let folder = folder("certificate_reloaded");
    let made = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (first, second) = (made(), made());
    let certificate = file(&folder, "cert.pem", &first.cert.pem(), 0o644);
    let key = file(&folder, "key.pem", &first.signing_key.serialize_pem(), 0o600);
    let authority = file(&folder, "second.pem", &second.cert.pem(), 0o644);
    let (mut running, address) =
        RunningCommand::serve("certificate_reloaded_served", &["--tls", &certificate, &key]);
    let url = format!("https://localhost:{}/mcp", address.port());
    let tools = || run_with(&["tools", &url], &[("SSL_CERT_FILE", &authority)], "");
    assert_ne!(tools().code, Some(0), "the first certificate is not trusted");
    replace(&folder, "cert.pem", &second.cert.pem());
    running.wait_for("cannot reload TLS certificate, keeping the previous ones");
    replace(&folder, "key.pem", &second.signing_key.serialize_pem());
    running.wait_for("reloaded TLS certificate: used for new connections");
    let listed = tools();
    assert_eq!(listed.code, Some(0), "{listed:?}");
}

#[test]
fn changed_state_keys_are_read_again() {
    let folder = folder("keys_reloaded");
    let key = file(&folder, "key", "0123456789abcdef0123456789abcdef", 0o600);
    let (mut running, _) = RunningCommand::serve("keys_reloaded_served", &["--state-key", &key]);
    replace(&folder, "key", "too short");
    assert!(running.wait_for("cannot reload state keys").contains("32 bytes"));
    replace(&folder, "key", "fedcba9876543210fedcba9876543210");
    running.wait_for("reloaded state keys: 1 in use");
}

#[test]
fn public_url_is_served_as_metadata_and_named_in_challenges() {
    let tokens = file(&folder("public_url"), "tokens", &format!("ann {ANN}"), 0o600);
    let auth = format!("bearer:{tokens}");
    let (_running, address) = RunningCommand::serve(
        "public_url_served",
        &["--auth", &auth, "--public-url", "https://hub.example/mcp"],
    );
    let document = get(address, "/.well-known/oauth-protected-resource/mcp", &[]);
    assert_eq!(document.json()["resource"], "https://hub.example/mcp");
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    let refused = post(address, &message, &[]);
    let expected =
        r#"Bearer resource_metadata="https://hub.example/.well-known/oauth-protected-resource/mcp""#;
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some(expected)));
    for wrong in ["hub.example", "https://hub.example/mcp#x", "ftp://hub.example"] {
        let finished = run(&["serve", "--auth", &auth, "--public-url", wrong], "");
        assert_eq!(finished.code, Some(2), "{wrong}: {finished:?}");
    }
}
