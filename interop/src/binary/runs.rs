//! What is typed, and what must be printed.

use super::Server;
use super::more;
use crate::sdk;

/// One run of the command.
pub(super) struct Run {
    pub(super) name: &'static str,
    /// What is typed; the target is added.
    pub(super) words: &'static [&'static str],
    pub(super) exit: i32,
    /// Parts of what is printed.
    pub(super) out: &'static [&'static str],
    /// Parts of the expected standard error.
    pub(super) err: &'static [&'static str],
    /// It is left out where a server has to be started for it: another run shows as much.
    pub(super) only_if_fast: bool,
}

const fn run(
    name: &'static str,
    words: &'static [&'static str],
    exit: i32,
    out: &'static [&'static str],
    err: &'static [&'static str],
) -> Run {
    Run { name, words, exit, out, err, only_if_fast: false }
}

const fn if_fast(
    name: &'static str,
    words: &'static [&'static str],
    exit: i32,
    out: &'static [&'static str],
    err: &'static [&'static str],
) -> Run {
    Run { name, words, exit, out, err, only_if_fast: true }
}

const OURS: &[Run] = &[
    run("tools", &["tools"], 0, &["add(a: int, b: int) -> {sum: int}\n    Adds two integers.\n"], &[]),
    if_fast("tools_schema", &["tools", "add", "--schema"], 0, &["\"integer\""], &[]),
    if_fast("prompts", &["prompts"], 0, &["greet(name, [style])\n    Greets somebody.\n"], &[]),
    if_fast("resources", &["resources"], 0, &["note://plain", "note://numbered/{number}"], &[]),
    run("call", &["call", "add", "a=2", "b=3"], 0, &["5"], &[]),
    if_fast("call_json_args", &["call", "add", "--json-args", r#"{"a":2,"b":3}"#], 0, &["5"], &[]),
    if_fast(
        "call_wrong_kind",
        &["call", "add", "a=two", "b=3"],
        2,
        &[],
        &["argument `a` must be a whole number"],
    ),
    if_fast("call_wrong_name", &["call", "ad", "a=2"], 2, &[], &["unknown tool `ad`", "did you mean `add`?"]),
    if_fast("call_fails", &["call", "fail"], 1, &[], &["tool `fail` failed:", "it went wrong"]),
    if_fast("progress", &["call", "count", "to=3", "-v"], 0, &["counted to 3"], &["progress: 3/3 at 3"]),
    run(
        "form_accept",
        &["call", "ask_name", "--answer", "name=ann", "--answer", "colour=green", "--answer", "age=9"],
        0,
        &["accept age=9 colour=green name=ann news=true"],
        &[],
    ),
    if_fast("form_decline", &["call", "ask_name", "--answer", "decline"], 0, &["decline"], &[]),
    if_fast(
        "form_wrong",
        &["call", "ask_name", "--answer", "name=ann", "--answer", "colour=blue"],
        2,
        &[],
        &["must be one of red, green", "Who are you?"],
    ),
    if_fast("form_nobody", &["call", "ask_name"], 1, &[], &["error: "]),
    if_fast("page", &["call", "ask_page", "--answer", "accept"], 0, &["accept"], &[]),
    if_fast("roots", &["call", "ask_roots", "--roots", "{scratch}"], 0, &["file://"], &[]),
    if_fast(
        "log",
        &["call", "log", "--log-level", "warning"],
        0,
        &["logged"],
        &["warning interop: {\"code\":7}"],
    ),
    if_fast("read", &["read", "note://plain"], 0, &["plain words\n"], &[]),
    if_fast("read_template", &["read", "note://numbered/{number}", "number=7"], 0, &["number 7\n"], &[]),
    if_fast("read_unknown", &["read", "note://nothing/at/all"], 1, &[], &["the server refused"]),
    if_fast("prompt", &["prompt", "greet", "name=Ann"], 0, &["user:\nGreet Ann in a plain way.\n"], &[]),
    if_fast("prompt_incomplete", &["prompt", "greet"], 2, &[], &["missing argument `name`"]),
    run("complete", &["complete", "greet", "style=f"], 0, &["formal\nfriendly\n"], &[]),
    if_fast("complete_context", &["complete", "greet", "style=f", "name=king"], 0, &["formal\n"], &[]),
    run("doctor", &["doctor"], 0, &["ok       server", "interop", " listed"], &["warnings"]),
    if_fast("wrong_address", &["info", "nothing"], 2, &[], &["error: "]),
];

const OUR_CHECKS: &[super::Check] =
    sdk::checks![more::info, more::result_as_json, more::saved_bytes, more::interrupted];
const OUR_CHECKS_AMONG_CLIENTS: &[super::Check] = sdk::checks![more::watched];

const fn ours(name: &'static str) -> Server {
    Server { name, runs: OURS, checks: OUR_CHECKS, among_clients: OUR_CHECKS_AMONG_CLIENTS, ..PUBLISHED }
}

/// A server that others published.
const PUBLISHED: Server =
    Server { name: "", prepare: |_, _| Ok(()), runs: &[], checks: &[], among_clients: &[] };

const EVERYTHING: &[Run] = &[
    run("info", &["info"], 0, &["mcp-servers/everything", "2025-11-25 (legacy)"], &[]),
    run("tools", &["tools"], 0, &["get-sum(a: float, b: float)", "get-structured-content("], &[]),
    run("call", &["call", "get-sum", "a=2", "b=3"], 0, &["The sum of 2 and 3 is 5."], &[]),
    run(
        "call_structured",
        &["call", "get-structured-content", "location=Chicago"],
        0,
        &["temperature: 36", "humidity: 82"],
        &[],
    ),
    run("image", &["call", "get-tiny-image", "--out", "{scratch}/"], 0, &[], &["saved 4033 bytes"]),
    run(
        "form",
        &["call", "trigger-elicitation-request", "--answer", "name=ann", "--answer", "check=false"],
        0,
        &["- Name: ann", "- Agreed to terms: false"],
        &[],
    ),
    run(
        "progress",
        &["call", "trigger-long-running-operation", "duration=0.2", "steps=2", "-v"],
        0,
        &["completed"],
        &["progress: 2/2"],
    ),
    run(
        "read",
        &["read", "demo://resource/dynamic/text/{resourceId}", "resourceId=3"],
        0,
        &["Resource 3:"],
        &[],
    ),
    run("prompt", &["prompt", "args-prompt", "city=Ulm"], 0, &["What's weather in Ulm?"], &[]),
    run(
        "complete",
        &["complete", "completable-prompt", "name=", "department=Sales"],
        0,
        &["David\nEve\nFrank\n"],
        &[],
    ),
    run("doctor", &["doctor"], 0, &["ok       era", "legacy"], &[]),
];

const FILESYSTEM: &[Run] = &[
    run("info", &["info", "--roots", "{scratch}/first"], 0, &["secure-filesystem-server"], &[]),
    run(
        "read_in_a_root",
        &["call", "read_text_file", "path={scratch}/first/note.txt", "--roots", "{scratch}/first"],
        0,
        &["first"],
        &[],
    ),
    run(
        "outside_of_the_roots",
        &["call", "read_text_file", "path={scratch}/second/note.txt", "--roots", "{scratch}/first"],
        1,
        &[],
        &["Access denied"],
    ),
    run("doctor", &["doctor", "--roots", "{scratch}/first"], 0, &["secure-filesystem-server"], &[]),
];

const MEMORY: &[Run] = &[
    run(
        "remember",
        &[
            "call",
            "create_entities",
            r#"entities:=[{"name":"Ada","entityType":"person","observations":["wrote programs"]}]"#,
        ],
        0,
        &["Ada"],
        &[],
    ),
    run("recall", &["call", "search_nodes", "query=programs"], 0, &["Ada"], &[]),
    run("resources", &["resources"], 0, &["knowledge-graph"], &[]),
    run("doctor", &["doctor"], 0, &["memory-server"], &[]),
];

const TIME: &[Run] = &[
    run("info", &["info"], 0, &["mcp-time", "stdio"], &[]),
    run(
        "tools",
        &["tools"],
        0,
        &["convert_time(source_timezone: str, time: str, target_timezone: str)"],
        &[],
    ),
    run("call", &["call", "get_current_time", "timezone=Etc/UTC"], 0, &["Etc/UTC", "+00:00"], &[]),
    run("call_fails", &["call", "get_current_time", "timezone=Moon/Base"], 1, &[], &["Moon/Base"]),
    run("nothing_to_watch", &["watch"], 1, &[], &["the server tells of none of these changes"]),
    run("doctor", &["doctor"], 0, &["mcp-time"], &[]),
];

const GIT: &[Run] = &[
    run("tools", &["tools"], 0, &["git_status(repo_path: str)"], &[]),
    run("doctor", &["doctor"], 0, &["mcp-git"], &[]),
];

const FETCH: &[Run] = &[
    run("tools", &["tools"], 0, &["fetch(url: "], &[]),
    run("prompt_incomplete", &["prompt", "fetch"], 2, &[], &["missing argument `url`"]),
    run("doctor", &["doctor"], 0, &["mcp-fetch"], &[]),
];

pub(super) const SERVERS: &[Server] = &[
    ours("npm-sdk-v1"),
    ours("npm-server-v2"),
    ours("pypi-mcp-v1"),
    ours("pypi-mcp-v2"),
    Server { name: "everything", runs: EVERYTHING, ..PUBLISHED },
    Server { name: "filesystem", prepare: sdk::filesystem::prepare, runs: FILESYSTEM, ..PUBLISHED },
    Server { name: "memory", prepare: sdk::memory::prepare, runs: MEMORY, ..PUBLISHED },
    Server { name: "time", runs: TIME, ..PUBLISHED },
    Server { name: "git", runs: GIT, checks: sdk::checks![more::repository], ..PUBLISHED },
    Server { name: "fetch", runs: FETCH, checks: sdk::checks![more::fetched], ..PUBLISHED },
];
