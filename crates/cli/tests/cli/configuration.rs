//! Configuration errors are reported before the server starts: what, where, what to do, and the exit code of their kind.

use std::net::TcpListener;

use crate::process::{file, folder, run};

/// Runs a command that must fail before it serves, and holds its words to the form that all failures have.
#[track_caller]
fn check(args: &[&str], code: i32, parts: &[&str]) {
    let finished = run(args, "");
    assert_eq!(finished.code, Some(code), "{args:?}: {finished:?}");
    assert_eq!(finished.stdout, "", "{args:?}: words go to standard error");
    assert!(finished.stderr.starts_with("error: "), "{args:?}: {finished:?}");
    if code != 2 {
        let hint = finished.stderr.lines().nth(1).unwrap_or_default();
        assert!(hint.starts_with("hint: "), "{args:?}: {finished:?}");
    }
    for part in parts {
        assert!(finished.stderr.contains(part), "{args:?}: no `{part}` in {}", finished.stderr);
    }
    for debug in ["Os {", "Err(", "Some(", "panicked"] {
        assert!(!finished.stderr.contains(debug), "{args:?}: {}", finished.stderr);
    }
}

#[test]
fn invalid_options_are_reported_with_the_expected_value() {
    for (args, parts) in [
        (&["serve", "--builtin", "sqlite"][..], &["sqlite", "echo", "time"][..]),
        (&["serve", "--builtin", "echo,"], &["echo", "time"]),
        (&["serve", "--http", "nowhere"], &["HOST:PORT"]),
        (&["serve", "--http", ":99999"], &["HOST:PORT"]),
        (&["serve", "--path", "mcp"], &["/mcp"]),
        (&["serve", "--path", "/healthz"], &["reserved for health checks"]),
        (&["serve", "--grace", "5"], &["5s"]),
        (&["serve", "--session-ttl", "1d"], &["1h"]),
        (&["serve", "--max-message", "4MB"], &["MiB"]),
        (&["serve", "--max-sessions", "many"], &["many"]),
        (&["serve", "--auth", "basic:file"], &["bearer:FILE"]),
        (&["serve", "--log-level", "loud"], &["error, warn, info, debug, trace"]),
        (&["serve", "--log-format", "xml"], &["text, json"]),
        (&["serve", "--env", "A=B"], &["only the name"]),
        (&["serve", "--stdio", "--http", ":0"], &["--stdio", "--http"]),
        (&["serve", "--stdio", "--auth", "bearer:x"], &["--stdio", "--auth"]),
        (&["serve", "--auth", "bearer:x", "--insecure-no-auth"], &["--auth", "--insecure-no-auth"]),
        (&["serve", "--tls"], &["--tls"]),
        (&["serve", "--tls", "cert.pem"], &["--tls"]),
        (&["serve", "--ws-path", "ws"], &["/mcp"]),
        (&["serve", "--allow-origin", "https://app.example.com/"], &["no trailing slash"]),
        (&["serve", "--allow-origin", "foo"], &["https://app.example.com"]),
        (&["serve", "--allow-origin", "*"], &["https://app.example.com"]),
        (&["serve", "--allow-host", "mcp.example.com/"], &["without scheme, path"]),
        (&["serve", "--allow-host", "https://mcp.example.com"], &["without scheme"]),
        (&["serve", "--max-sessions", "0"], &["--max-sessions", "zero"]),
        (&["serve", "--session-ttl", "0s"], &["1s or more"]),
        (&["serve", "--only-streamable", "--sse-path", "/x"], &["--only-streamable", "--sse-path"]),
        (&["serve", "--only-streamable", "--messages-path", "/x"], &["--messages-path"]),
        (&["serve", "--only-streamable", "--ws-path", "/x"], &["--ws-path"]),
        (&["sevre"], &["sevre", "serve"]),
        (&["completions", "cmd"], &["bash", "zsh", "fish"]),
    ] {
        check(args, 2, parts);
    }
}

#[test]
fn unusable_option_files_exit_with_the_configuration_code() {
    let folder = folder("files_that_cannot_be_used");
    let secret = "0123456789abcdef0123456789abcdef";
    let auth = |name: &str, content: &str, mode| format!("bearer:{}", file(&folder, name, content, mode));
    let missing = folder.join("missing").join("file");
    let missing = missing.to_str().unwrap();
    let missing_auth = format!("bearer:{missing}");
    for (option, value, part) in [
        ("--auth", missing_auth.as_str(), missing),
        ("--auth", &auth("exposed", "ann 0123456789abcdef\n", 0o644), "chmod 600"),
        ("--auth", &auth("malformed", "# one\nann\n", 0o600), "line 2"),
        ("--auth", &auth("short", "ann secret\n", 0o600), "16 characters"),
        ("--auth", &auth("empty", "\n", 0o600), "holds no token"),
        ("--state-key", missing, missing),
        ("--state-key", &file(&folder, "exposed-key", secret, 0o644), "chmod 600"),
        ("--state-key", &file(&folder, "short-key", "secret", 0o600), "32 bytes"),
        ("--log-file", missing, missing),
        ("--port-file", missing, missing),
        ("--port-file", folder.to_str().unwrap(), "port file"),
    ] {
        check(&["serve", "--http", ":0", option, value], 3, &[part]);
    }
}

#[test]
fn client_file_without_servers_is_not_replaced_by_the_demo() {
    let folder = folder("without_servers");
    for (name, text, part) in [
        ("typo.json", r#"{"mcpServer": {}}"#, "did you mean `mcpServers`?"),
        ("empty.json", "{}", "has no servers; expected { \"mcpServers\""),
    ] {
        check(&["serve", "--http", ":0", "--config", &file(&folder, name, text, 0o600)], 3, &[part]);
    }
}

#[test]
fn unusable_certificate_and_duplicate_path_are_reported() {
    let folder = folder("certificates");
    let missing = folder.join("missing").join("file");
    let missing = missing.to_str().unwrap();
    let empty = file(&folder, "empty", "", 0o600);
    let exposed = file(&folder, "exposed", "", 0o644);
    for (certificate, key, part) in [
        (missing, empty.as_str(), missing),
        (&empty, missing, missing),
        (&empty, &exposed, "chmod 600"),
        (&empty, &empty, "holds no certificate"),
    ] {
        check(&["serve", "--http", ":0", "--tls", certificate, key], 3, &[part, "--tls CERT KEY"]);
    }
    check(&["serve", "--http", ":0", "--ws-path", "/mcp"], 3, &["/mcp", "--only-streamable"]);
}

#[test]
fn non_loopback_address_needs_auth_or_insecure_no_auth() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        check(
            &["serve", "--http", address],
            3,
            &["other machines", "--auth bearer:FILE", "--insecure-no-auth"],
        );
        check(
            &["serve", "--http", ":0", "--admin", address],
            3,
            &["other machines", "--auth bearer:FILE", "--insecure-no-auth"],
        );
    }
}

#[test]
fn conflicting_options_exit_with_the_configuration_code() {
    for (args, parts) in [
        (&["--audit-arguments"][..], &["needs an audit log", "--audit FILE"][..]),
        (
            &["--env", "API_KEY", "--env", "OTHER", "--env", "api_key"],
            &["API_KEY and api_key", "case-insensitive"],
        ),
    ] {
        check(&[&["serve", "--http", ":0", "--no-config"], args].concat(), 3, parts);
    }
}

#[test]
fn address_in_use_is_reported_with_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check(&["serve", "--http", &address], 1, &[&address, "in use", "--http :0"]);
    // What other servers call it.
    let port = taken.local_addr().unwrap().port().to_string();
    check(&["serve", "--port", &port], 1, &[&address, "in use"]);
}

#[test]
fn help_version_and_completions_are_data() {
    for (args, part) in [
        (&["--help"][..], "Exit codes"),
        (&["help", "serve"], "--state-key"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
        (&["completions", "bash"], "complete -F"),
        (&["completions", "zsh"], "#compdef trunkline"),
    ] {
        let finished = run(args, "");
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(finished.stdout.contains(part), "{args:?}: {}", finished.stdout);
    }
    let nothing = run(&[], "");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(2), ""));
    assert!(nothing.stderr.contains("Usage: trunkline <COMMAND>"));
}
