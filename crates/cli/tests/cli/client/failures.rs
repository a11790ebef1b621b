//! What goes wrong between us and a server, by exit code and in words.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use super::{TestPeer, ask};
use crate::process::{file, folder, run, run_at_home};

const OWN_BINARY: &str = env!("CARGO_BIN_EXE_trunkline");

#[test]
fn missing_server_is_unreachable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (args, told) in [
        (vec!["tools".to_owned(), format!("http://{free}/mcp")], "Connection refused"),
        (vec!["tools".to_owned(), format!("ws://{free}/ws")], "Connection refused"),
        (vec!["tools".to_owned(), "--".to_owned(), "/no/such/program".to_owned()], "was not found"),
        (vec!["tools".to_owned(), "--".to_owned(), "false".to_owned()], "exited with code 1"),
    ] {
        let finished = run(&args.iter().map(String::as_str).collect::<Vec<_>>(), "");
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(4), ""), "{args:?}: {finished:?}");
        assert!(finished.stderr.starts_with("error: cannot connect to "), "{args:?}: {finished:?}");
        assert!(finished.stderr.contains(told), "{args:?}: {finished:?}");
    }
}

#[test]
fn stderr_of_a_crashed_program_is_reported() {
    let finished = run(&["tools", "--", "sh", "-c", "echo no licence found >&2; exit 7"], "");
    assert_eq!(finished.code, Some(4), "{finished:?}");
    assert_eq!(
        finished.stderr,
        "error: cannot connect to sh -c 'echo no licence found >&2; exit 7': `sh` exited with code 7\n\
         its standard error ended with:\n  no licence found\n\
         tried:\n  server/discover at 2026-07-28: `sh` exited with code 7\n  \
         initialize at 2025-11-25: `sh` exited with code 7\n\
         hint: `trunkline doctor -- sh -c 'echo no licence found >&2; exit 7'` checks each step\n"
    );
}

#[test]
fn silent_program_is_reported_while_it_is_waited_for_and_with_its_output() {
    let script = "echo Usage: server PORT; echo config not found >&2; while read line; do :; done";
    let finished = run(&["tools", "--timeout", "2s", "--", "sh", "-c", script], "");
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let waiting = format!("waiting for sh -c '{script}' to answer; each attempt times out after 2s");
    assert!(finished.stderr.starts_with(&waiting), "{finished:?}");
    for part in [
        "no answer within 2s\nits standard output is not the protocol; it printed:\n  Usage: server PORT\n",
        "its standard error ended with:\n  config not found\n",
        &format!("hint: `trunkline doctor -- sh -c '{script}'` checks each step\n"),
    ] {
        assert!(finished.stderr.contains(part), "no {part:?} in {}", finished.stderr);
    }
}

#[test]
fn slow_launcher_is_reported_with_the_download_that_it_may_wait_for() {
    let home = folder("slow_launcher");
    file(&home, "npx", "#!/bin/sh\nwhile read line; do :; done\n", 0o700);
    let npx = home.join("npx");
    let finished = run(&["tools", "--timeout", "1s", "--", npx.to_str().unwrap(), "-y", "server"], "");
    assert_eq!(finished.code, Some(4), "{finished:?}");
    let hint = "\nhint: `npx` may still be downloading the package; try again with `--timeout 3m`\n";
    assert!(finished.stderr.ends_with(hint), "{finished:?}");
}

#[test]
fn program_gets_the_proxy_and_the_certificates_of_the_network_and_no_other_variables() {
    let home = folder("network_variables");
    let variables =
        [("HTTPS_PROXY", "http://proxy:1"), ("NODE_EXTRA_CA_CERTS", "/ca.pem"), ("SOME_SECRET", "canary")];
    let finished = run_at_home(&["tools", "--", "sh", "-c", "env | sort >&2; exit 3"], &home, &variables);
    assert_eq!(finished.code, Some(4), "{finished:?}");
    for line in ["HTTPS_PROXY=http://proxy:1", "NODE_EXTRA_CA_CERTS=/ca.pem"] {
        assert!(finished.stderr.contains(line), "no {line} in {}", finished.stderr);
    }
    assert!(!finished.stderr.contains("canary"), "{finished:?}");
}

#[test]
fn refused_proxy_is_named_with_its_variable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = format!("http://user:canary@{free}");
    let home = folder("refused_proxy");
    for command in ["tools", "doctor"] {
        let words = [command, "http://server.example/mcp"];
        let finished = run_at_home(&words, &home, &[("http_proxy", proxy.as_str())]);
        assert_eq!(finished.code, Some(4), "{finished:?}");
        let told = finished.stdout + &finished.stderr;
        assert!(told.contains(&format!("the proxy `{free}` (from `http_proxy`) cannot be used: ")), "{told}");
        assert!(!told.contains("canary") && !told.contains("server.example resolved"), "{told}");
    }
    let words = ["tools", "http://server.example/mcp"];
    let finished = run_at_home(&words, &home, &[("HTTP_PROXY", "socks5://p:1")]);
    assert!(finished.stderr.contains("environment variable `HTTP_PROXY`: "), "{finished:?}");
}

#[test]
fn hint_at_a_command_has_the_target() {
    let peer = TestPeer::start();
    let finished = ask(&peer, "modern", &["call", "zzz"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    let hint = finished.stderr.lines().find(|line| line.starts_with("hint: `trunkline tools ")).unwrap();
    assert!(hint.ends_with("` lists them") && hint.contains("trunkline tools http"), "{hint}");
    let finished = run(&["tools", "localhost:7411"], "");
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.stderr.contains("hint: did you mean `http://localhost:7411/mcp`?"), "{finished:?}");
}

#[test]
fn verbose_prints_program_output_outside_the_protocol() {
    let program = format!("echo Welcome; echo loading >&2; exec '{OWN_BINARY}' serve --stdio");
    let command = ["--", "sh", "-c", &program];
    let silent = run(&[&["call", "echo", "message=hi"], &command[..]].concat(), "");
    assert_eq!((silent.stdout.as_str(), silent.stderr.as_str()), ("hi\n", ""), "{silent:?}");
    let told = run(&[&["call", "echo", "message=hi", "-v"], &command[..]].concat(), "");
    assert_eq!(told.stdout, "hi\n", "{told:?}");
    for line in ["stdout: Welcome\n", "stderr: loading\n"] {
        assert!(told.stderr.contains(line), "{told:?}");
    }
}

#[test]
fn long_messages_are_taken_up_to_a_bound_that_can_be_set() {
    let folder = folder("long_messages");
    let long = file(&folder, "long", &"x".repeat(20 << 20), 0o600);
    let message = format!("message=@{long}");
    let server = ["--", OWN_BINARY, "serve", "--stdio", "--max-message", "64MiB"];
    let taken = run(&[&["call", "echo", &message], &server[..]].concat(), "");
    assert_eq!((taken.code, taken.stdout.len()), (Some(0), (20 << 20) + 1), "{}", taken.stderr);
    let refused = run(&[&["call", "echo", &message, "--max-message", "1MiB"], &server[..]].concat(), "");
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
    assert_eq!(
        refused.stderr,
        "error: the server sent a message of more than 1048576 bytes\n\
         hint: increase `--max-message`; the server may have run the call\n"
    );
}

#[test]
fn empty_lists_are_reported() {
    let peer = TestPeer::serving(&trunkline_server::Server::new("empty"));
    for (words, told) in [
        (&["tools"][..], "the server has no tools\n"),
        (&["prompts"], "the server has no prompts\n"),
        (&["resources"], "the server has no resources\n"),
    ] {
        for way in ["modern", "legacy"] {
            let finished = ask(&peer, way, words);
            let seen = (finished.code, finished.stdout.as_str(), finished.stderr.as_str());
            assert_eq!(seen, (Some(0), "", told), "{way}: {words:?}");
            let json = ask(&peer, way, &[words, &["--json"]].concat());
            assert_eq!((json.code, json.stderr.as_str()), (Some(0), ""), "{way}: {words:?}");
            assert!(json.stdout.contains("[]"), "{way}: {json:?}");
        }
    }
    let refused = ask(&peer, "legacy", &["complete", "greeting", "name=A"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let hint = refused.stderr.lines().last().unwrap_or_default();
    assert!(hint.starts_with("hint: `trunkline info http://"), "{refused:?}");
    assert!(hint.ends_with("` lists the server's capabilities"), "{refused:?}");
}

#[test]
fn url_without_an_mcp_server_fails_with_every_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        while let Ok((mut connection, _)) = listener.accept() {
            let _ = connection.read(&mut [0; 4096]);
            let body = "<html>Hello</html>";
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
            let _ = write!(connection, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    let finished = run(&["tools", &url], "");
    assert_eq!(finished.code, Some(4), "{finished:?}");
    for tried in ["\n  server/discover at 2026-07-28: ", "\n  initialize at 2025-11-25: "] {
        assert!(finished.stderr.contains(tried), "{finished:?}");
    }
}

#[test]
fn url_with_another_path_suggests_the_usual_one() {
    let peer = TestPeer::start();
    for path in ["", "/", "/mpc", "/mcp/x"] {
        let finished = run(&["tools", &format!("http://{}{path}", peer.address)], "");
        let hint = format!("\nhint: nothing is at this path; did you mean `http://{}/mcp`?\n", peer.address);
        assert_eq!(
            (finished.code, finished.stderr.ends_with(&hint)),
            (Some(4), true),
            "{path}: {finished:?}"
        );
    }
}

#[test]
fn silent_server_times_out_and_the_call_is_cancelled() {
    let peer = TestPeer::start();
    for way in ["modern", "legacy"] {
        let finished = ask(&peer, way, &["call", "wait", "--timeout", "2s"]);
        assert_eq!(finished.code, Some(1), "{way}: {finished:?}");
        assert!(finished.stderr.starts_with("error: no response within 2"), "{way}: {finished:?}");
        assert!(finished.stderr.contains("\nhint: increase `--timeout`"), "{way}: {finished:?}");
        peer.wait_for("called");
        peer.wait_for("cancelled");
    }
}

#[test]
fn server_errors_are_printed_with_their_message() {
    let peer = TestPeer::start();
    let finished = ask(&peer, "modern", &["read", "test://no-such-resource"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.starts_with("error: the server refused: "), "{finished:?}");
}

#[test]
fn invalid_command_line_is_reported_with_a_hint() {
    for (args, told) in [
        (&["call"][..], "error: missing argument: TARGET\nhint: a URL, a configured name"),
        (&["call", "--hub", "add", "--", "x"], "`--hub` and a command after `--` are two targets"),
        (&["info", "http://127.0.0.1:1/", "more"], "error: unexpected argument `more`\n"),
        (&["tools", "ftp://example.com"], "error: `ftp://example.com`: "),
        (&["tools", "http://x", "--era", "middle"], "expected legacy or modern"),
        (&["tools", "http://x", "--revision", "2024-10-07"], "2024-11-05, 2025-03-26"),
        (&["tools", "http://x", "--header", "no colon"], "expected NAME:VALUE"),
        (&["help", "targts"], "hint: did you mean `targets`?"),
    ] {
        let finished = run(args, "");
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{args:?}: {finished:?}");
        assert!(finished.stderr.contains(told), "{args:?}: {}", finished.stderr);
    }
}

#[test]
fn help_and_completions_know_every_command() {
    let commands = [
        "tools",
        "prompts",
        "resources",
        "call",
        "read",
        "prompt",
        "complete",
        "info",
        "watch",
        "doctor",
        "serve",
    ];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&["completions", shell], "").stdout;
        for command in commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
        assert!(script.contains("--bearer") || script.contains("-l bearer"), "{shell}");
    }
    for command in commands {
        let help = run(&["help", command], "");
        assert_eq!(help.code, Some(0), "{help:?}");
        assert!(help.stdout.contains(&format!("Usage: trunkline {command} ")), "{help:?}");
        assert!(command == "serve" || help.stdout.contains("Examples:\n  trunkline "), "{help:?}");
    }
    for topic in ["targets", "arguments", "answers", "exit-codes"] {
        assert_eq!(run(&["help", topic], "").code, Some(0), "{topic}");
    }
}
