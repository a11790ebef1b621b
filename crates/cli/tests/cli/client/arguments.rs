//! How the words of a command line become the arguments of a tool.

use super::{TRANSPORTS, TestPeer, ask, output};
use crate::process::{file, folder, run};

#[test]
fn arguments_are_coerced_to_the_schema() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        assert_eq!(output(&peer, way, &["call", "add", "a=2", "b=3"]).trim_end(), "5", "{way}");
    }
    let file = file(&folder("arguments_from_a_file"), "arguments.json", r#"{"a": 40, "b": 2}"#, 0o600);
    for words in [
        &["call", "add", "a=41"][..],
        &["call", "add", "a:=41"],
        &["call", "add", "--json-args", r#"{"a":40,"b":2}"#],
        &["call", "add", &format!("@{file}")],
        &["call", "add", "--json-args", &format!("@{file}"), "b=2"],
    ] {
        assert_eq!(output(&peer, "modern", words).trim_end(), "42", "{words:?}");
    }
}

#[test]
fn standard_input_is_an_argument_or_all_of_them() {
    let peer = TestPeer::start();
    let url = peer.url();
    let whole = run(&["call", &url, "add", "@-"], r#"{"a":1,"b":1}"#);
    assert_eq!(whole.stdout.trim_end(), "2", "{whole:?}");
    let one = run(&["call", &url, "test_custom_header", "value=@-", "--json"], "typed");
    assert_eq!(one.code, Some(0), "{one:?}");
    assert!(one.stdout.contains("typed"), "{one:?}");
}

#[test]
fn invalid_arguments_are_reported_before_sending() {
    let peer = TestPeer::start();
    for (words, told) in [
        (&["call", "add", "a=two"][..], "error: argument `a` must be a whole number\n"),
        (&["call", "add"], "error: missing argument `a`\nhint: add(a: int, [b: int = 1])"),
        (&["call", "add", "a=1", "c=2"], "error: unknown argument `c`\nhint: known arguments: a, b\n"),
        (&["call", "add", "1"], "error: invalid argument `1`\nhint: use NAME=VALUE, such as a=1\n"),
        (&["call", "add", "a=@/no/such/file"], "error: cannot read file /no/such/file"),
        (&["call", "adding"], "error: unknown tool `adding`\nhint: did you mean `add`?\n"),
        (&["call"], "error: missing argument: TOOL\n"),
    ] {
        let finished = ask(&peer, "modern", words);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(2), ""), "{finished:?}");
        assert!(finished.stderr.starts_with(told), "{words:?}: {}", finished.stderr);
    }
}

#[test]
fn resources_and_prompts_are_filled_in() {
    let peer = TestPeer::start();
    for way in TRANSPORTS {
        let read = output(&peer, way, &["read", "test://template/{id}/data", "id=a b"]);
        assert!(read.contains("a b") || read.contains("a%20b"), "{way}: {read}");
        let prompt = output(&peer, way, &["prompt", "test_prompt_with_arguments", "arg1=one", "arg2=two"]);
        assert!(prompt.starts_with("user:\n") && prompt.contains("one"), "{way}: {prompt}");
    }
    let wrong = ask(&peer, "modern", &["read", "test://template/{id}/data", "di=7"]);
    assert_eq!((wrong.code, wrong.stderr.contains("no variable `di`")), (Some(2), true), "{wrong:?}");
    let missing = ask(&peer, "modern", &["prompt", "test_prompt_with_arguments", "arg1=one"]);
    assert_eq!((missing.code, missing.stderr.contains("missing argument `arg2`")), (Some(2), true));
}

#[test]
fn arguments_are_checked_against_the_whole_schema_before_sending() {
    let folder = folder("whole_schema");
    let text =
        "[commands.show]\nargv = [\"echo\", \"{n}\"]\narguments.n = { type = \"integer\", max = 10 }\n";
    let config = file(&folder, "trunkline.toml", text, 0o600);
    let audit = folder.join("audit");
    let server = [env!("CARGO_BIN_EXE_trunkline"), "serve", "--stdio", "--trust", "--config", &config];
    let server: Vec<&str> = server.into_iter().chain(["--audit", audit.to_str().unwrap()]).collect();
    for words in [&["n=11"][..], &["n:=11"], &["n:=\"x\""], &["--json-args", r#"{"n":1.5}"#]] {
        let call = [&["call", "show"], words, &["--"], &server[..]].concat();
        let refused = run(&call, "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(!std::fs::read_to_string(&audit).unwrap_or_default().contains("show"), "{words:?} was sent");
    }
    let sent = run(&[&["call", "show", "n=11", "--no-check", "--"], &server[..]].concat(), "");
    assert_eq!(sent.code, Some(1), "{sent:?}");
    assert!(std::fs::read_to_string(&audit).unwrap().contains("show"), "{sent:?}");
    let fine = run(&[&["call", "show", "n=10", "--"], &server[..]].concat(), "");
    assert_eq!(fine.stdout.trim_end(), "10", "{fine:?}");
}
