//! Canaries: a secret in every place where one can enter, and a look at every place where none may come out.

mod channels;
mod requests;

use std::net::SocketAddr;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bare_client::{HttpReply, get, post, send};
use crate::messages::{call, initialize, initialized, legacy, lines, modern};
use crate::process::{RunningCommand, file, folder, run, run_with};

/// A secret that names where it entered.
fn canary(place: &str) -> String {
    format!("canary-{place}-5e3f0d9a41c7")
}

/// What every canary has and nothing else does.
const MARK: &str = "-5e3f0d9a41c7";

#[track_caller]
fn assert_clean(what: &str, text: &str) {
    let leak = text.lines().find(|line| line.contains(MARK));
    assert!(leak.is_none(), "{what} tells a secret: {leak:?}");
}

/// The replies to requests that carry secrets; a caller may get back its own values, and no other caller may.
struct CanaryCaller {
    address: SocketAddr,
    token: String,
}

impl CanaryCaller {
    /// Posts a message with a response that must have no secret.
    #[track_caller]
    fn post(&self, message: &Value, headers: &[(&str, &str)]) -> HttpReply {
        let reply = self.post_own(message, headers);
        assert_clean("an answer", &reply.head);
        assert_clean("an answer", &reply.body);
        reply
    }

    /// Posts a message with a response that may repeat the values of the request.
    #[track_caller]
    fn post_own(&self, message: &Value, headers: &[(&str, &str)]) -> HttpReply {
        let mut all = vec![("Authorization", self.token.as_str())];
        all.extend_from_slice(headers);
        post(self.address, message, &all)
    }

    #[track_caller]
    fn send(&self, start: &str, headers: &[(&str, &str)], body: &str) -> HttpReply {
        let mut all = vec![("Authorization", self.token.as_str())];
        all.extend_from_slice(headers);
        let reply = send(self.address, start, &all, body);
        assert_clean("an answer", &reply.head);
        assert_clean("an answer", &reply.body);
        reply
    }
}

#[test]
fn secrets_never_appear_in_logs_metrics_errors_or_command_lines() {
    for format in ["json", "text"] {
        let folder = folder(&format!("canary-{format}"));
        let token = canary("token");
        let tokens = file(&folder, "tokens", &format!("ann {token}\n"), 0o600);
        let key = file(&folder, "key", &canary("state-key-of-more-than-32-bytes"), 0o600);
        let auth = format!("bearer:{tokens}");
        let options = ["--log-level", "trace", "--log-format", format, "--auth", &auth, "--state-key", &key];
        // Callers may bring the variable; what this process itself has under that name is not for them.
        let options = [&options[..], &["--env", "API_KEY", "--cookie-sessions"]].concat();
        let variables = [("TRUNKLINE_SECRET", &*canary("environment")), ("API_KEY", &*canary("api-key"))];
        let (running, address) =
            RunningCommand::serve_with(&format!("canary-serve-{format}"), &options, &variables);
        let caller = CanaryCaller { address, token: format!("Bearer {token}") };
        let mut ids = vec![requests::exercise(&caller)];
        ids.extend(channels::exercise_sse(&caller));
        channels::exercise_websocket(&caller);
        assert_clean("the command line", &running.command_line());
        let metrics = get(address, "/metrics", &[]).body;
        running.signal(Signal::TERM);
        let finished = running.wait();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        // Without this check, an empty log would pass.
        for said in ["tools/call", "echo", "2025-11-25", "outcome"] {
            assert!(finished.stderr.contains(said), "the log says nothing of {said}: {}", finished.stderr);
        }
        for (what, text) in
            [("the log", &finished.stderr), ("the metrics", &metrics), ("the output", &finished.stdout)]
        {
            assert_clean(what, text);
            let told = ids.iter().find(|id| text.contains(id.as_str()));
            assert_eq!(told, None, "{what} has the whole id of a session or of what is kept");
        }
    }
}

#[test]
fn secrets_sent_over_stdio_are_never_logged() {
    let secret = canary("pipe");
    let messages = [
        initialize(),
        initialized(),
        legacy(2, "tools/call", call("echo", json!({ "message": secret }))),
        legacy(3, "tools/call", call("convert", json!({ "time": secret, "from": secret, "to": secret }))),
        modern(4, "tools/call", call("echo", json!({ "message": secret }))),
    ];
    for format in ["json", "text"] {
        let input = lines(&messages) + &format!("{{\"broken\": \"{secret}\"\n");
        let finished = run(&["serve", "--stdio", "--log-level", "trace", "--log-format", format], &input);
        assert_eq!(finished.stdout.lines().count(), 5, "{}", finished.stdout);
        assert!(finished.stderr.contains("tools/call"), "{}", finished.stderr);
        assert_clean("the log", &finished.stderr);
    }
}

#[test]
fn process_environment_never_leaks_over_stdio() {
    let (allowed, other) = (canary("allowed-variable"), canary("other-variable"));
    let variables = [("API_KEY", allowed.as_str()), ("OTHER_KEY", other.as_str())];
    let messages = [
        initialize(),
        initialized(),
        // The caller may know the value, and even then it is not repeated to the model.
        legacy(2, "tools/call", call("echo", json!({ "message": format!("key {allowed}") }))),
        modern(3, "tools/call", call("echo", json!({ "message": format!("key {allowed}") }))),
        modern(4, "tools/call", call(&allowed, json!({}))),
        modern(5, "resources/read", json!({ "uri": format!("time://{allowed}") })),
    ];
    let options = ["serve", "--stdio", "--env", "API_KEY", "--log-level", "trace"];
    let finished = run_with(&options, &variables, &lines(&messages));
    assert_eq!(finished.stdout.matches("key [secret]").count(), 2, "{}", finished.stdout);
    assert_clean("an answer", &finished.stdout);
    assert_clean("the log", &finished.stderr);
}

#[test]
fn secret_in_an_invalid_file_is_not_repeated() {
    let folder = folder("canary-files");
    let unnamed = file(&folder, "unnamed", &canary("token-without-a-name"), 0o600);
    let open = file(&folder, "open", &format!("ann {}\n", canary("token-for-everybody")), 0o644);
    let short = file(&folder, "short", MARK, 0o600);
    for args in [
        ["--auth", &format!("bearer:{unnamed}")],
        ["--auth", &format!("bearer:{open}")],
        ["--state-key", &short],
    ] {
        let finished =
            run(&[&["serve", "--http", "127.0.0.1:0", "--log-level", "trace"][..], &args].concat(), "");
        assert_eq!(finished.code, Some(3), "{finished:?}");
        assert_clean("the error", &finished.stderr);
    }
}
