//! What a target can be, and what is sent along.

use std::sync::Arc;

use trunkline_server::http::{BearerTokens, HttpServerOptions};

use super::peer::over_pipes;
use super::{TestPeer, ask, output};
use crate::process::{RunningCommand, file, folder, run, run_at_home};

const OWN_BINARY: &str = env!("CARGO_BIN_EXE_trunkline");

#[test]
fn command_target_follows_dashes_or_is_quoted() {
    let behind = run(&["call", "echo", "message=hi", "--", OWN_BINARY, "serve", "--stdio"], "");
    assert_eq!((behind.code, behind.stdout.as_str(), behind.stderr.as_str()), (Some(0), "hi\n", ""));
    let quoted = run(&["call", &format!("'{OWN_BINARY}' serve --stdio"), "echo", "message=hi"], "");
    assert_eq!((quoted.code, quoted.stdout.as_str()), (Some(0), "hi\n"), "{quoted:?}");
}

#[test]
fn names_are_looked_up_in_configurations() {
    let peer = TestPeer::start();
    let folder = folder("a_name_is_looked_up");
    let json = format!(
        r#"{{ "mcpServers": {{
            "near": {{ "command": "{OWN_BINARY}", "args": ["serve", "--stdio", "--no-config"] }},
            "far": {{ "url": "{}" }}
        }} }}"#,
        peer.url()
    );
    let named = file(&folder, "servers.json", &json, 0o600);
    let near = run(&["call", "near", "echo", "message=hi", "--config", &named], "");
    assert_eq!((near.code, near.stdout.as_str()), (Some(0), "hi\n"), "{near:?}");
    assert_eq!(near.stderr, format!("starting {OWN_BINARY} serve --stdio --no-config ({named})\n"));
    let far = run(&["call", "far", "test_simple_text", "--config", &named], "");
    assert_eq!((far.code, far.stderr.as_str()), (Some(0), ""), "{far:?}");
    file(&folder, "mcp.json", &json, 0o600);
    let here = RunningCommand::start_in(&["call", "near", "echo", "message=hi", "-q"], &folder).finish();
    assert_eq!((here.code, here.stdout.as_str(), here.stderr.as_str()), (Some(0), "hi\n", ""));
    let unknown = run(&["tools", "nearby", "--config", &named], "");
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    assert!(unknown.stderr.contains("hint: did you mean `near`?"), "{unknown:?}");
}

#[test]
fn name_in_two_files_is_announced_with_both() {
    let home = folder("a_name_in_two_files");
    let server = |word: &str| {
        format!(
            r#"{{"mcpServers":{{"notes":{{"command":"{OWN_BINARY}","args":["serve","--stdio","--no-config","--builtin","{word}"]}}}}}}"#
        )
    };
    file(&home, "mcp.json", &server("echo"), 0o600);
    std::fs::create_dir(home.join(".cursor")).unwrap();
    let other = file(&home.join(".cursor"), "mcp.json", &server("time"), 0o600);
    let found = run_at_home(&["call", "notes", "echo", "message=hi"], &home, &[]);
    assert_eq!((found.code, found.stdout.as_str()), (Some(0), "hi\n"), "{found:?}");
    let told = format!("another server of this name is in {other} (choose a file with --config)\n");
    assert!(found.stderr.starts_with("using `notes` of ") && found.stderr.contains(&told), "{found:?}");
    // The same server twice is nothing to choose from.
    file(&home.join(".cursor"), "mcp.json", &server("echo"), 0o600);
    let found = run_at_home(&["call", "notes", "echo", "message=hi"], &home, &[]);
    assert!(found.stderr.starts_with("starting "), "{found:?}");
}

#[test]
fn program_gets_the_given_variables_and_folder() {
    let folder = folder("a_program_gets_its_surroundings");
    let whole = folder.canonicalize().unwrap();
    let secret = file(&folder, "secret", "from a file\n", 0o600);
    for (variable, seen) in [
        ("AROUND=literal", "literal"),
        (&*format!("AROUND=@{secret}"), "from a file"),
        ("AROUND=env:HOME", env!("HOME")),
    ] {
        let cwd = folder.to_str().unwrap();
        let words = ["call", &over_pipes(), "around", "--env", "PEER=1", "--env", variable, "--cwd", cwd];
        let finished = run(&words, "");
        assert_eq!(finished.stdout, format!("{seen} {}\n", whole.display()), "{finished:?}");
    }
    let missing = run(&["tools", "--env", "X=env:NO_SUCH_VARIABLE_HERE", "--", OWN_BINARY], "");
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(missing.stderr.contains("NO_SUCH_VARIABLE_HERE"), "{missing:?}");
}

#[test]
fn bearer_tokens_are_read_from_env_and_files_and_sent() {
    let tokens = BearerTokens::new([("ann", "sesame-open-wide-0123456789")]);
    let peer = TestPeer::start_with(HttpServerOptions {
        authenticator: Arc::new(tokens),
        ..HttpServerOptions::default()
    });
    let right = file(&folder("tokens"), "token", "sesame-open-wide-0123456789\n", 0o600);
    for way in ["modern", "legacy", "sse", "websocket"] {
        let refused = ask(&peer, way, &["tools"]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(5), ""), "{way}: {refused:?}");
        assert!(refused.stderr.contains(&peer.address.to_string()), "{way}: {refused:?}");
        assert!(
            refused.stderr.contains("send a token with `--bearer env:NAME` or `--bearer @FILE`"),
            "{way}: {refused:?}"
        );
        assert!(output(&peer, way, &["tools", "--bearer", &format!("@{right}")]).contains("add("), "{way}");
        let header = format!("Authorization:@{right}");
        let without_scheme = ask(&peer, way, &["tools", "--header", &header]);
        assert_eq!(without_scheme.code, Some(5), "{way}: {without_scheme:?}");
    }
    let url = peer.url();
    let variables = [("TOKEN", "sesame-open-wide-0123456789")];
    let from_variable =
        RunningCommand::start_with(&["info", &url, "--bearer", "env:TOKEN"], &variables).finish();
    assert_eq!(from_variable.code, Some(0), "{from_variable:?}");
    let literal = run(&["info", &url, "--bearer", "sesame"], "");
    assert_eq!(literal.code, Some(2), "{literal:?}");
    assert!(!literal.stderr.contains("others on this machine") || !literal.stderr.is_empty());
}

#[test]
fn expanded_variable_values_are_never_printed() {
    let folder = folder("what_a_variable_stands_for");
    let json = r#"{ "mcpServers": { "mute": { "command": "false", "args": ["--key=${KEY}"] } } }"#;
    let named = file(&folder, "servers.json", json, 0o600);
    for command in ["doctor", "tools"] {
        let args = [command, "mute", "-v", "--config", &named];
        let finished = RunningCommand::start_with(&args, &[("KEY", "canary-in-an-argument")]).finish();
        assert_eq!(finished.code, Some(4), "{finished:?}");
        let shown = finished.stdout + &finished.stderr;
        assert!(shown.contains("false --key=${KEY}") && !shown.contains("canary"), "{shown}");
    }
}
