//! The documents match the repository: the example, the numbers, the files and the tests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use trunkline::ServerLimits;
use trunkline::client::ClientLimits;
use trunkline::protocol::envelope::MessageLimits;
use trunkline::session::{BusLimits, EventLimits, SessionLimits, StateLimits};
use trunkline::transport::process::{GracePeriods, RunLimits};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two folders up").to_owned()
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file of the workspace")
}

/// Returns the code spans of a document, without its blocks of code.
fn code_spans(document: &str) -> Vec<String> {
    let prose: Vec<&str> = document.split("```").step_by(2).collect();
    prose.join("").split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn readme_shows_the_smallest_server_verbatim() {
    let example = read("examples/tool.rs");
    let code = example.split_once("\n\n").expect("its description").1;
    assert!(read("README.md").contains(&format!("```rust\n{code}```\n")));
}

#[test]
fn server_guide_shows_the_demo_verbatim() {
    let example = read("examples/demo.rs");
    let code = example.split_once("\n\n").expect("its description").1;
    assert!(read("docs/server.md").contains(&format!("```rust\n{code}```\n")));
    let parts = code.split_once("\n\n").expect("its imports").1;
    let parts = parts.split_once("#[tokio::main]").expect("what serves them").0;
    for part in parts.split_terminator("\n\n") {
        assert!(part.lines().count() <= 5, "a part is five lines: {part}");
    }
    for attribute in ["#[tool]", "#[prompt]", "#[resource("] {
        assert!(parts.contains(attribute), "the demo has a part by {attribute}");
    }
    assert!(parts.lines().filter(|line| !line.is_empty()).count() <= 15, "three parts are fifteen lines");
}

#[test]
fn server_guide_shows_the_booking_example_verbatim() {
    let example = read("examples/book.rs");
    let shown = example.split_once("prelude::*;\n\n").expect("its imports").1;
    let shown = shown.split_once("\n#[tokio::main]").expect("what serves it").0;
    assert!(read("docs/server.md").contains(&format!("```rust\n{shown}```\n")));
}

#[test]
fn readme_and_guide_show_the_client_verbatim() {
    let example = read("examples/client.rs");
    let code = example.split_once("\n\n").expect("its description").1;
    for document in ["README.md", "docs/client.md"] {
        assert!(read(document).contains(&format!("```rust\n{code}```\n")), "{document}");
    }
    let client = code.split("\n\n").nth(1).expect("the client");
    assert_eq!(client.lines().count(), 4, "the README promises four lines for {client}");
}

#[test]
fn interceptor_page_shows_the_example_verbatim() {
    let example = read("examples/interceptors.rs");
    let code = example.split_once("\n\n").expect("its description").1;
    assert!(read("docs/interceptors.md").contains(&format!("```rust\n{code}```\n")));
}

#[test]
fn hub_guide_shows_the_example_verbatim() {
    let example = read("examples/hub.rs");
    let code = example.split_once("\n\n").expect("its description").1;
    assert!(read("docs/hub-library.md").contains(&format!("```rust\n{code}```\n")));
}

#[test]
fn transport_guide_shows_the_example_verbatim() {
    let example = read("examples/unix_socket.rs");
    assert!(example.lines().count() < 120, "a transport is small");
    let guide = read("docs/write-a-transport.md");
    let blocks: Vec<&str> =
        guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 6, "{}", blocks.len());
    for block in &blocks {
        assert!(example.contains(block), "not in the example:\n{block}");
    }
    let channel = example.split("impl Channel for").nth(1).unwrap_or_default();
    for method in ["fn poll_receive", "fn send", "fn poll_flush", "fn queued"] {
        assert!(channel.contains(method) && blocks.iter().any(|block| block.contains(method)), "{method}");
    }
}

/// Reports whether a document names a file of a client, such as `~/.codex/config.toml`.
fn is_of_client(span: &str) -> bool {
    span.starts_with("~/") || span.ends_with("config.toml")
}

#[test]
fn files_that_documents_name_are_there() {
    for document in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "docs/authorization.md",
        "docs/client.md",
        "docs/command-line.md",
        "docs/configuration.md",
        "docs/commands.md",
        "docs/hub.md",
        "docs/hub-library.md",
        "docs/record.md",
        "docs/limits.md",
        "docs/interceptors.md",
        "docs/server.md",
        "docs/write-a-transport.md",
    ] {
        let spans = code_spans(&read(document));
        let named = spans.iter().filter(|span| {
            // The configuration, and what is below `~`, are files of the user.
            !span.contains([' ', '{', '*'])
                && *span != "trunkline.toml"
                && !is_of_client(span)
                && (span.ends_with(".rs") || span.ends_with(".md") || span.ends_with(".toml"))
        });
        for path in named {
            assert!(root().join(path).exists(), "{document} names {path}");
        }
        for link in read(document).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            let folder = Path::new(document).parent().expect("a folder");
            let outside = link.starts_with("http");
            assert!(
                outside || file.is_empty() || root().join(folder).join(file).exists(),
                "{document} links {link}"
            );
        }
    }
}

#[test]
fn tests_that_hold_the_invariants_are_there() {
    let mut sources = String::new();
    for folder in ["crates", "fuzz", "xtask", "conformance"] {
        gather(&root().join(folder), &mut sources);
    }
    let spans = code_spans(&read("ARCHITECTURE.md"));
    let sentence = |span: &&String| {
        span.matches('_').count() >= 3
            && span.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let named: Vec<_> = spans.iter().filter(sentence).collect();
    assert!(named.len() >= 10, "every invariant names its test: {named:?}");
    for test in named {
        assert!(sources.contains(&format!("fn {test}(")), "ARCHITECTURE.md names {test}");
    }
}

fn gather(folder: &Path, sources: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder of the workspace").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            gather(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&std::fs::read_to_string(&path).expect("a source file"));
        }
    }
}

/// Writes the required rows of `docs/limits.md`, up to the explanation of the number.
macro_rules! rows {
    ($limits:ident { $($field:ident: $write:ident),* $(,)? }) => {{
        // No `..`: a field that is added must be added to the document too.
        let $limits { $($field),* } = $limits::default();
        vec![$(format!("| `{}::{}` | {} |", stringify!($limits), stringify!($field), $write($field))),*]
    }};
}

#[test]
fn every_default_is_in_the_document_of_limits() {
    let limits = {
        let ServerLimits { bounds, .. } = ServerLimits::default();
        let MessageLimits { depth, batch } = bounds;
        [
            format!("| `MessageLimits::depth` | {} |", count(depth)),
            format!("| `MessageLimits::batch` | {} |", count(batch)),
        ]
    };
    let rows = [
        limits.to_vec(),
        rows!(ServerLimits {
            message_bytes: size,
            bounds: both,
            calls: count,
            calls_per_principal: count,
            calls_per_channel: count,
            queued_bytes: size,
            unread_bytes: size,
            request_memory_bytes: size,
            suspended_for: time,
            suspended_per_principal: count,
            suspended: count,
            state_bytes: size,
            stream_after: time,
            keep_alive: time,
            body_timeout: time,
            head_timeout: time,
            first_request_timeout: time,
            idle_timeout: time,
            write_timeout: time,
            connections: count,
            connections_per_address: count,
            reserved_connections: count,
            streams_per_session: count,
            subscriptions: count,
            subscriptions_per_principal: count,
            watched_uri_bytes: size,
            drain_timeout: time,
        }),
        rows!(ClientLimits {
            message_bytes: size,
            message_memory: budget,
            bounds: both,
            in_flight: count,
            queued_bytes: size,
            malformed_messages: count,
            probe_timeout: time,
            initialize_delay: time,
            handshake_timeout: time,
            request_timeout: time,
            max_total_timeout: time,
            close_timeout: time,
            input_rounds: count,
            input_batch_window: time,
            pages: count,
            items: count,
            list_bytes: size,
            cache_entries: count,
            cache_bytes: size,
            session_requests: count,
            reopen_delay: time,
        }),
        rows!(SessionLimits {
            total: count,
            per_principal: count,
            record_bytes: size,
            subscription_bytes: size,
            total_bytes: size,
            idle: time,
            absolute: time
        }),
        rows!(EventLimits { events: count, bytes: size, age: time, total_bytes: size }),
        rows!(StateLimits { total: count, per_principal: count, bytes: size, idle: time, absolute: time }),
        rows!(BusLimits {
            message_bytes: size,
            published_bytes: size,
            inbox_messages: count,
            inbox_bytes: size
        }),
        rows!(GracePeriods { after_stdin_close: time, after_sigterm: time }),
        rows!(RunLimits {
            stdout_bytes: size,
            stderr_bytes: size,
            line_bytes: size,
            timeout: perhaps,
            kill_after: time,
            drain_timeout: time
        }),
    ]
    .concat();
    let document = read("docs/limits.md");
    for row in rows {
        assert!(document.lines().any(|line| line.starts_with(&row)), "docs/limits.md lacks {row}");
    }
}

fn perhaps(duration: Option<Duration>) -> String {
    duration.map_or_else(|| "none".to_owned(), time)
}

fn both(_: MessageLimits) -> &'static str {
    "as below"
}

#[expect(clippy::needless_pass_by_value, reason = "the fields of a row are taken by value")]
fn budget(memory: trunkline::client::MessageBudget) -> String {
    size(memory.limit())
}

fn count(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    }
}

fn time(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}
