//! What servers ask, answered in advance.

use super::{TRANSPORTS, TestPeer, ask, output};
use crate::process::{file, folder, run};

#[test]
fn answers_are_given_in_advance() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let booked = output(&peer, way, &["call", "book", "--answer", "name=Ann", "--answer", "seat=window"]);
        assert_eq!(booked, "Accept {\"name\":\"Ann\",\"guests\":2,\"seat\":\"w\",\"vip\":false}\n", "{way}");
        let declined = output(&peer, way, &["call", "book", "--answer", "decline"]);
        assert_eq!(declined, "Decline\n", "{way}");
        let cancelled = output(&peer, way, &["call", "book", "--answer", "cancel"]);
        assert_eq!(cancelled, "Cancel\n", "{way}");
        let twice = &[
            "call",
            "test_input_required_result_multi_round",
            "--answer",
            "name=Ann",
            "--answer",
            "color=red",
        ];
        assert_eq!(output(&peer, way, twice), "Ann likes red\n", "{way}");
    }
}

#[test]
fn missing_and_invalid_preset_answers_are_reported_with_the_field() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        for (answers, told) in [
            (
                &["--answer", "name=Ann"][..],
                "Everything asks for `seat`: A table?\nhint: answer in advance with `--answer seat=VALUE`",
            ),
            (&["--answer", "name=Ann", "--answer", "seat=roof"], "`--answer seat=…` must be one of w, a"),
            (&["--answer", "accept"], "Everything asks for `name`: A table?"),
        ] {
            let finished = ask(&peer, way, &[&["call", "book"], answers].concat());
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{way}: {finished:?}");
            assert!(finished.stderr.contains(told), "{way}: {answers:?}: {}", finished.stderr);
        }
    }
}

#[test]
fn elicitation_is_not_declared_without_a_terminal_or_answers() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let finished = ask(&peer, way, &["call", "book"]);
        assert_eq!(finished.code, Some(1), "{way}: {finished:?}");
        assert!(
            finished.stderr.contains("error: input is required, and there is no terminal"),
            "{way}: {finished:?}"
        );
    }
}

#[test]
fn sampling_reply_comes_from_the_sample_option() {
    let peer = TestPeer::start();
    let file = file(&folder("a_model_is_stood_in_for"), "answer", "Oslo", 0o600);
    for way in TRANSPORTS {
        for (sample, answer) in [("--sample=Paris", "Paris"), (&*format!("--sample=@{file}"), "Oslo")] {
            let said = output(&peer, way, &["call", "test_sampling", "prompt=Capital?", sample]);
            assert!(said.contains(answer), "{way}: {said}");
        }
    }
    let nobody = ask(&peer, "modern", &["call", "test_sampling", "prompt=Capital?", "--sample"]);
    assert_eq!(nobody.code, Some(2), "{nobody:?}");
    assert!(nobody.stderr.contains("hint: answer in advance with `--sample=TEXT`"), "{nobody:?}");
}

#[test]
fn url_elicitation_is_accepted_by_preset_answer_and_never_opened() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        for (answer, said) in [("accept", "Accept\n"), ("decline", "Decline\n")] {
            assert_eq!(output(&peer, way, &["call", "page", "--answer", answer]), said, "{way}");
        }
        let unanswered = ask(&peer, way, &["call", "page", "--answer", "other=x"]);
        assert_eq!(unanswered.code, Some(2), "{way}: {unanswered:?}");
        let told = "asks you to visit https://example.com/login?from=peer: Log in, please.\nhint: accept with `--answer accept`";
        assert!(unanswered.stderr.contains(told), "{way}: {unanswered:?}");
    }
}

#[test]
fn roots_are_those_of_the_command_line() {
    let peer = TestPeer::start();
    let folder = folder("roots_of_the_command_line");
    let folder = folder.to_str().unwrap();
    for way in TRANSPORTS {
        let told = output(&peer, way, &["call", "test_input_required_result_list_roots", "--roots", folder]);
        assert_eq!(told, format!("the host works in file://{folder}\n"), "{way}");
    }
    let missing = ask(&peer, "modern", &["call", "book", "--roots", "/no/such/folder"]);
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(missing.stderr.starts_with("error: root /no/such/folder is not a folder\n"), "{missing:?}");
}

/// A legacy server that requests the roots when its session begins, and prints the response before any other message.
const ASKS_FIRST: &str = r#"heard=nothing
n=0
while read -r line; do
case $line in
*'"initialize"'*) n=$((n+1)); printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}\n' $n;;
*'"notifications/initialized"'*) printf '%s\n' '{"jsonrpc":"2.0","id":"r","method":"roots/list"}';;
*'"roots"'*) heard=roots;;
*'"tools/list"'*) n=$((n+1)); printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"%s","inputSchema":{"type":"object"}}]}}\n' $n $heard;;
esac
done"#;

#[test]
fn roots_are_provided_before_the_first_call() {
    let finished = run(&["tools", "--era", "legacy", "--roots", "/", "--", "sh", "-c", ASKS_FIRST], "");
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "roots()\n"), "{finished:?}");
}
