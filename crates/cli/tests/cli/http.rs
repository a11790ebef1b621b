//! `serve` over HTTP: both eras on one path, two probes beside it, and strangers kept out of all three.

use rustix::process::Signal;
use serde_json::json;

use crate::bare_client::{RawConnection, get, mirror_headers, post, request, send};
use crate::messages::{call, initialize, initialized, legacy, modern, parse_lines};
use crate::process::{RunningCommand, file, folder, run};

#[test]
fn legacy_session_and_modern_call_share_one_path() {
    let (running, address) = RunningCommand::serve("both_eras", &[]);
    let opened = post(address, &initialize(), &[]);
    assert_eq!(opened.status, 200, "{opened:?}");
    let session = [
        ("Mcp-Session-Id", opened.header("mcp-session-id").unwrap()),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    assert_eq!(post(address, &initialized(), &session).status, 202);
    let echo = || call("echo", json!({ "message": "hello" }));
    let answer = post(address, &legacy(2, "tools/call", echo()), &session);
    assert_eq!(answer.json()["result"]["content"][0]["text"], "hello");
    assert_eq!(send(address, "DELETE /mcp", &session, "").status, 204);
    assert_eq!(post(address, &legacy(3, "ping", json!({})), &session).status, 404);

    let answer = post(address, &modern(4, "tools/call", echo()), &[]);
    assert_eq!(answer.json()["result"]["content"][0]["text"], "hello");

    running.signal(Signal::TERM);
    let finished = running.wait();
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
}

#[test]
fn paths_of_other_transports_are_served_unless_disabled() {
    for (args, expected) in [
        (&[][..], [200, 400, 426, 404]),
        (&["--only-streamable"], [404, 404, 404, 404]),
        (&["--sse-path", "/mcp/sse", "--ws-path", "/other"], [404, 400, 404, 426]),
    ] {
        let (_running, address) = RunningCommand::serve("other_transports", args);
        let lines = ["GET /sse", "POST /messages", "GET /ws", "GET /other"];
        for (line, expected) in lines.into_iter().zip(expected) {
            // A stream does not end, so that its head is all there is to wait for.
            let mut connection = RawConnection::open(address);
            connection.write(&request(address, line, &[], ""));
            connection.read_until("\r\n");
            assert!(connection.seen().starts_with(&format!("HTTP/1.1 {expected} ")), "{args:?} {line}");
        }
    }
}

#[test]
fn more_callers_are_served_than_a_shell_has_given_descriptors() {
    let (_running, address) = RunningCommand::serve_with_descriptors("few_descriptors", "-S -n 64", &[]);
    let mut callers: Vec<_> = (0..200).map(|_| RawConnection::open(address)).collect();
    for caller in &mut callers {
        caller.write(&request(address, "GET /healthz", &[("Connection", "keep-alive")], ""));
    }
    // All connections stay open until every caller has its response.
    for caller in &mut callers {
        caller.read_until("\r\n");
        assert!(caller.seen().starts_with("HTTP/1.1 200 "), "{}", caller.seen());
    }
}

#[test]
fn health_checks_and_the_admin_address_are_reachable_while_one_address_holds_all_its_connections() {
    // Of 256 descriptors half are for connections, and seven eighths of those for the loopback.
    const LOCAL: usize = 112;
    let (running, address) =
        RunningCommand::serve_with_descriptors("reserved", "-n 256", &["--admin", "127.0.0.2:0"]);
    let admin = running.seen().split("metrics on http://").nth(1).unwrap();
    let admin = admin.split('/').next().unwrap().parse().unwrap();
    let mut streams = Vec::new();
    while streams.len() < LOCAL {
        let opened = post(address, &initialize(), &[]);
        let session = [("Mcp-Session-Id", opened.header("mcp-session-id").unwrap())];
        for _ in 0..4 {
            let mut stream = RawConnection::open(address);
            let accept = [session[0], ("Accept", "text/event-stream"), ("Connection", "keep-alive")];
            stream.write(&request(address, "GET /mcp", &accept, ""));
            stream.read_until("\r\n");
            assert!(stream.seen().starts_with("HTTP/1.1 200 "), "{}", stream.seen());
            streams.push(stream);
        }
    }
    assert_eq!(post(address, &initialize(), &[]).status, 503);
    // Peers that send nothing do not take what is reserved.
    let silent: Vec<_> = (0..80).map(|_| RawConnection::open(address)).collect();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(address, path, &[]).status, 200, "{path}");
    }
    let metrics = get(admin, "/metrics", &[("Host", "localhost")]);
    assert_eq!(metrics.status, 200);
    let refused = r#"mcp_server_refused_connections_total{reason="full"} 1"#;
    assert!(metrics.body.contains(refused), "{}", metrics.body);
    drop((silent, streams));
    crate::hub::wait_until("there is room again", || {
        (post(address, &initialize(), &[]).status == 200).then_some(())
    });
}

#[test]
fn tls_is_served_with_a_certificate_and_key() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = folder("tls_files");
    let certificate = file(&folder, "cert.pem", &made.cert.pem(), 0o644);
    let key = file(&folder, "key.pem", &made.signing_key.serialize_pem(), 0o600);
    let (running, address) = RunningCommand::serve("tls", &["--tls", &certificate, &key]);
    running.signal(Signal::TERM);
    let finished = running.wait();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains(&format!("https://{address}/mcp")), "{finished:?}");
}

#[test]
fn banner_has_the_url_and_the_port_file_is_removed_at_exit() {
    let (running, address) = RunningCommand::serve("banner", &[]);
    let port_file = running.port_file.clone();
    assert!(port_file.exists());
    running.signal(Signal::INT);
    let finished = running.wait();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in [
        format!("claude mcp add --transport http trunkline http://{address}/mcp"),
        format!("\"url\": \"http://{address}/mcp\""),
        "echo, time".to_owned(),
        "shutting down".to_owned(),
    ] {
        assert!(finished.stderr.contains(&part), "{part}: {}", finished.stderr);
    }
    assert!(!port_file.exists());
}

#[test]
fn ready_fd_receives_the_address() {
    let (running, address) = RunningCommand::serve("ready_fd", &["--ready-fd", "1"]);
    assert_eq!(running.read_line().trim_end(), address.to_string());
    assert_eq!(get(address, "/healthz", &[]).status, 200);
    let closed = run(&["serve", "--no-config", "--http", "127.0.0.1:0", "--ready-fd", "99"], "");
    assert_eq!(closed.code, Some(3), "{closed:?}");
    assert!(closed.stderr.contains("cannot write to descriptor 99"), "{closed:?}");
}

#[test]
fn json_log_has_only_json_lines() {
    let (running, address) = RunningCommand::serve("json_log", &["--log-format", "json"]);
    running.signal(Signal::TERM);
    let log = parse_lines(&running.wait().stderr);
    let ready = log.iter().find(|line| line["message"] == "ready").unwrap();
    assert_eq!(ready["url"], format!("http://{address}/mcp"));
}

#[test]
fn health_probes_respond_while_the_server_runs() {
    let (_running, address) = RunningCommand::serve("probes", &[]);
    let alive = get(address, "/healthz", &[]);
    assert_eq!((alive.status, alive.body.as_str()), (200, "ok"));
    let ready = get(address, "/readyz", &[]);
    assert_eq!((ready.status, ready.json()), (200, json!({ "ready": true })));
    let refused = send(address, "POST /healthz", &[], "{}");
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD")));
    assert_eq!(get(address, "/elsewhere", &[]).status, 404);
}

#[test]
fn requests_with_foreign_origin_or_host_are_rejected() {
    let (_running, address) = RunningCommand::serve("foreign", &[]);
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    for foreign in [
        ("Origin", "http://evil.example"),
        ("Origin", "null"),
        ("Host", "evil.example"),
        ("Host", "evil.example:7411"),
    ] {
        assert_eq!(post(address, &message, &[foreign]).status, 403, "{foreign:?}");
        for path in ["/healthz", "/readyz"] {
            let refused = get(address, path, &[foreign]);
            assert_eq!(refused.status, 403, "{path} {foreign:?}");
            assert_eq!(refused.header("access-control-allow-origin"), None);
        }
    }
    assert_eq!(post(address, &message, &[("Origin", "http://localhost:3000")]).status, 200);
}

#[test]
fn rejected_host_and_origin_are_logged_once_with_the_reason() {
    let (running, address) = RunningCommand::serve("foreign_warned", &[]);
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    for foreign in ["one.example", "two.example"] {
        assert_eq!(post(address, &message, &[("Host", foreign)]).status, 403);
        let origin = format!("http://{foreign}");
        assert_eq!(post(address, &message, &[("Origin", &origin)]).status, 403);
    }
    running.signal(Signal::TERM);
    let said = running.wait().stderr;
    for reason in [
        "its Host is not one that clients may reach this server by",
        "its Origin is not one whose pages may call",
    ] {
        assert_eq!(said.matches(reason).count(), 1, "{said}");
    }
    assert!(!said.contains(".example"), "what a peer says is not logged: {said}");
}

#[test]
fn names_and_origins_that_are_allowed_pass() {
    let options = ["--allow-origin", "https://app.example", "--allow-host", "mcp.example"];
    let (_running, address) = RunningCommand::serve("allowed", &options);
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    let by_name = [("Origin", "https://app.example"), ("Host", "mcp.example:443")];
    let answer = post(address, &message, &by_name);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(post(address, &message, &[("Origin", "https://other.example")]).status, 403);
    assert_eq!(post(address, &message, &[("Host", "other.example")]).status, 403);
}

#[test]
fn any_address_of_the_loopback_can_be_reached_by_its_own_name() {
    let mut running = RunningCommand::start(&["serve", "--http", "127.0.0.2:0", "--log-format", "json"]);
    let ready: serde_json::Value = serde_json::from_str(&running.wait_for("127.0.0.2:")).unwrap();
    let address = ready["url"].as_str().and_then(|url| url.strip_prefix("http://")?.strip_suffix("/mcp"));
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    assert_eq!(post(address.unwrap().parse().unwrap(), &message, &[]).status, 200);
}

#[test]
fn endpoint_requires_the_token_and_probes_do_not() {
    let tokens = file(&folder("tokens-file"), "tokens", "ann 0123456789abcdef\n# bob is gone\n", 0o600);
    let (running, address) = RunningCommand::serve("tokens", &["--auth", &format!("bearer:{tokens}")]);
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    let refused = post(address, &message, &[]);
    assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")), "{refused:?}");
    assert_eq!(post(address, &message, &[("Authorization", "Bearer fedcba9876543210")]).status, 401);
    assert_eq!(post(address, &message, &[("Authorization", "Bearer 0123456789abcdef")]).status, 200);
    assert_eq!(get(address, "/readyz", &[]).status, 200);
    running.signal(Signal::TERM);
    let finished = running.wait();
    assert!(finished.stderr.contains("Authorization: Bearer TOKEN"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("0123456789abcdef"), "a token is never told");
}

#[test]
fn streams_the_path_and_the_number_of_sessions_are_as_the_options_say() {
    let (_running, address) =
        RunningCommand::serve("options", &["--always-sse", "--path", "/tools", "--max-sessions", "1"]);
    let message = initialize();
    let open = || send(address, "POST /tools", &mirror_headers(&message), &message.to_string());
    let first = open();
    assert_eq!((first.status, first.header("content-type")), (200, Some("text/event-stream")), "{first:?}");
    // The one session that is allowed is idle, so the next one replaces it.
    let ping = |session: &str| {
        let message = legacy(2, "ping", json!({}));
        send(address, "POST /tools", &[("Mcp-Session-Id", session)], &message.to_string()).status
    };
    let session = first.header("mcp-session-id").unwrap();
    assert_eq!(ping(session), 200);
    let second = open();
    assert_eq!(ping(second.header("mcp-session-id").unwrap()), 200);
    assert_eq!(ping(session), 404);
    assert_eq!(post(address, &message, &[]).status, 404);
}

#[test]
fn idle_session_expires_after_session_ttl() {
    let (_running, address) = RunningCommand::serve("ttl", &["--session-ttl", "1ms"]);
    let opened = post(address, &initialize(), &[]);
    let id = opened.header("mcp-session-id").unwrap();
    let ping = || post(address, &legacy(2, "ping", json!({})), &[("Mcp-Session-Id", id)]).status;
    // Nearly every request takes longer than that.
    assert!((0..1000).any(|_| ping() == 404));
}

#[test]
fn one_connection_carries_several_requests() {
    let (_running, address) = RunningCommand::serve("keep_alive", &[]);
    let mut connection = RawConnection::open(address);
    for round in 0..3 {
        let message =
            modern(round, "tools/call", call("echo", json!({ "message": format!("round {round}") })));
        let mut headers = mirror_headers(&message);
        headers.push(("Connection", "keep-alive"));
        connection.write(&request(address, "POST /mcp", &headers, &message.to_string()));
        connection.read_until(&format!("round {round}"));
    }
}

#[test]
fn only_the_variables_that_are_named_are_looked_at_and_no_value_is_logged() {
    let message = modern(1, "tools/call", call("echo", json!({ "message": "hello" })));
    for (test, args, status) in [
        ("env_unnamed", &[][..], 200),
        ("env_other", &["--env", "OTHER"], 200),
        ("env", &["--env", "TENANT"], 400),
    ] {
        let (running, address) = RunningCommand::serve(test, args);
        // A variable may not have a tab, so that the refusal shows that the value was checked.
        let answer = post(address, &message, &[("X-Env-Tenant", "sentinel\tvalue")]);
        assert_eq!(answer.status, status, "{test}: {answer:?}");
        post(address, &message, &[("X-Env-Unknown", "sentinel")]);
        running.signal(Signal::TERM);
        let finished = running.wait();
        assert_eq!(
            finished.stderr.contains("x-env-unknown"),
            !args.is_empty(),
            "{test}: {}",
            finished.stderr
        );
        assert!(!finished.stderr.contains("sentinel"), "{test}: {}", finished.stderr);
    }
}
