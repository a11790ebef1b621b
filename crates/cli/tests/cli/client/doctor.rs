//! `doctor`: each step of the way, and what is wrong with what a server offers.

use std::net::TcpListener;
use std::sync::Arc;

use serde_json::Value;
use trunkline_server::http::{BearerTokens, HttpServerOptions};

use super::{TestPeer, ask};
use crate::process::{RunningCommand, file, folder, run};

const OWN_BINARY: &str = env!("CARGO_BIN_EXE_trunkline");

/// The words of the line about a subject.
#[track_caller]
fn line<'t>(report: &'t str, subject: &str) -> &'t str {
    let found = report.lines().find(|line| line.split_whitespace().nth(1) == Some(subject));
    found.unwrap_or_else(|| panic!("nothing of {subject} in\n{report}"))
}

#[test]
fn doctor_has_a_line_for_every_step() {
    let peer = TestPeer::start();
    for (way, wanted) in [
        (
            "modern",
            &["address", "dns", "tcp", "tls", "http", "authorization", "era", "revision", "server", "speed"]
                [..],
        ),
        ("legacy", &["tcp", "http", "era", "revision", "speed", "tools", "prompts", "resources"]),
        ("sse", &["tcp", "http", "era", "speed"]),
        ("websocket", &["tcp", "websocket", "era", "speed"]),
        ("pipes", &["program", "pipes", "era", "speed"]),
    ] {
        let finished = ask(&peer, way, &["doctor"]);
        for subject in wanted {
            let line = line(&finished.stdout, subject);
            assert!(line.starts_with("ok ") || line.starts_with("- "), "{way}: {line}");
        }
        assert!(line(&finished.stdout, "speed").contains(" ms"), "{way}: {}", finished.stdout);
    }
}

#[test]
fn doctor_finds_no_problems_in_builtin_servers() {
    let finished = run(&["doctor", "--strict", "--", OWN_BINARY, "serve", "--stdio"], "");
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), "no problems found\n"), "{finished:?}");
    let quiet = run(&["doctor", "-q", "--json", "--", OWN_BINARY, "serve", "--stdio"], "");
    let report: Value = serde_json::from_str(&quiet.stdout).unwrap();
    assert_eq!((&report["problems"], quiet.stderr.as_str()), (&Value::from(0), ""), "{quiet:?}");
    assert!(report["lines"].as_array().unwrap().iter().any(|line| line["subject"] == "era"), "{report}");
}

#[test]
fn doctor_reports_tool_problems_and_exits_with_1() {
    let peer = TestPeer::start();
    let finished = ask(&peer, "modern", &["doctor"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let hidden = "problem  tool `steer`";
    assert!(finished.stdout.contains(hidden), "{}", finished.stdout);
    assert!(finished.stdout.contains("invisible characters, which models read"), "{}", finished.stdout);
    assert!(finished.stderr.starts_with("error: 1 problem"), "{}", finished.stderr);
    let json = ask(&peer, "modern", &["doctor", "--json"]);
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.code, &report["problems"]), (Some(1), &Value::from(1)), "{report}");
}

#[test]
fn doctor_reports_non_json_rpc_lines_on_stdout() {
    let program = format!("echo Welcome; echo; exec '{OWN_BINARY}' serve --stdio");
    let finished = run(&["doctor", "--", "sh", "-c", &program], "");
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        line(&finished.stdout, "stdout").ends_with("1 line on stdout is not JSON-RPC: Welcome"),
        "{finished:?}"
    );
}

#[cfg(unix)]
#[test]
fn doctor_warns_of_a_server_that_never_answers_the_probe() {
    // As servers on PyPI mcp up to 1.8: a request that it does not know is dropped.
    let program = r#"
        while read -r line; do
            id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
            case "$line" in
            *'"initialize"'*) result='{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"1"}}' ;;
            *'"ping"'*) result='{}' ;;
            *) continue ;;
            esac
            printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
        done"#;
    let finished = run(&["doctor", "--", "sh", "-c", program], "");
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let probe = line(&finished.stdout, "probe");
    assert!(probe.starts_with("warning ") && probe.contains("never answers `server/discover`"), "{probe}");
}

#[test]
fn doctor_reports_the_failed_connection_step() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = run(&["doctor", &format!("http://{free}/mcp")], "");
    assert_eq!(refused.code, Some(4), "{refused:?}");
    assert!(line(&refused.stdout, "tcp").starts_with("problem "), "{refused:?}");
    let unknown = run(&["doctor", "http://no-such-host.invalid/mcp"], "");
    assert_eq!(unknown.code, Some(4), "{unknown:?}");
    assert!(line(&unknown.stdout, "dns").starts_with("problem "), "{unknown:?}");
    let peer = TestPeer::start();
    let plain = run(&["doctor", &format!("https://{}/mcp", peer.address)], "");
    assert_eq!(plain.code, Some(4), "{plain:?}");
    assert!(line(&plain.stdout, "tcp").starts_with("ok "), "{plain:?}");
    assert!(line(&plain.stdout, "tls").starts_with("problem "), "{plain:?}");
    let missing = run(&["doctor", "--", "/no/such/program"], "");
    assert_eq!(missing.code, Some(4), "{missing:?}");
    assert!(line(&missing.stdout, "program").starts_with("problem"), "{missing:?}");
    assert!(line(&missing.stdout, "program").contains("was not found"), "{missing:?}");
    assert!(!missing.stdout.contains("protocol"), "{missing:?}");
    let program = run(&["doctor", "--", "false"], "");
    assert_eq!(program.code, Some(4), "{program:?}");
    assert!(line(&program.stdout, "program").starts_with("ok"), "{program:?}");
    assert!(line(&program.stdout, "protocol").contains("exited with code 1"), "{program:?}");
}

#[test]
fn doctor_reports_missing_and_rejected_credentials() {
    let tokens = BearerTokens::new([("ann", "sesame-open-wide-0123456789")]);
    let peer = TestPeer::start_with(HttpServerOptions {
        authenticator: Arc::new(tokens),
        ..HttpServerOptions::default()
    });
    let url = peer.url();
    for (options, code, words) in [
        (&[][..], 5, "credentials required (HTTP 401)"),
        (&["--header", "Authorization:Bearer wrong"], 5, "credentials rejected (HTTP 401)"),
        (&["--header", "Authorization:Bearer sesame-open-wide-0123456789"], 1, "credentials accepted"),
    ] {
        let finished = run(&[&["doctor", &url], options].concat(), "");
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(line(&finished.stdout, "authorization").contains(words), "{}", finished.stdout);
    }
}

#[test]
fn untrusted_certificate_is_the_finding_unless_it_is_added() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = folder("a_certificate_is_trusted");
    let certificate = file(&folder, "cert.pem", &made.cert.pem(), 0o644);
    let key = file(&folder, "key.pem", &made.signing_key.serialize_pem(), 0o600);
    let (_server, address) = RunningCommand::serve("doctor_tls", &["--tls", &certificate, &key]);
    let url = format!("https://localhost:{}/mcp", address.port());
    let trusted = RunningCommand::start_with(&["doctor", &url], &[("SSL_CERT_FILE", &certificate)]).finish();
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    assert!(line(&trusted.stdout, "tls").starts_with("ok "), "{trusted:?}");
    assert!(line(&trusted.stdout, "tls").contains("TLSv1_3"), "{trusted:?}");
    assert!(line(&trusted.stdout, "dns").contains("localhost resolves to "), "{trusted:?}");
    let strange = run(&["doctor", &url], "");
    assert_eq!(strange.code, Some(4), "{strange:?}");
    assert!(line(&strange.stdout, "tls").starts_with("problem "), "{strange:?}");
}
