//! Traces and metrics of a hub, as a collector gets them.

use std::collections::BTreeMap;
use std::io::{BufReader, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use trunkline_server::{Context, Server, Tool, ToolError, elicit};

use super::*;
use crate::client::TestPeer;
use crate::process::run;

#[path = "../../../../telemetry/src/otlp/reader.rs"]
mod reader;

use self::reader::ProtoMessage;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// What may be in no span: arguments, results, errors and secrets.
const SENTINEL: &str = "sentinel-of-the-content";

/// A collector that keeps what it receives.
struct TestCollector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedExport>>>,
}

/// A request to a collector.
#[derive(Clone, Debug)]
struct ReceivedExport {
    path: String,
    headers: String,
    body: Vec<u8>,
}

/// A span that arrived.
#[derive(Debug)]
struct ReceivedSpan {
    trace: String,
    span: String,
    parent: String,
    name: String,
    kind: u64,
    attributes: Vec<(String, String)>,
    events: Vec<String>,
    is_error: bool,
}

impl TestCollector {
    /// Answers each request with the next of these statuses, and then with 200.
    fn start(statuses: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let keeping = received.clone();
        std::thread::spawn(move || {
            let mut statuses = statuses.iter();
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let Some(export) = read_export(&mut reader) else { continue };
                let status = statuses.next().copied().unwrap_or("200 OK");
                keeping.lock().unwrap().push(export);
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, received }
    }

    fn exports(&self, path: &str) -> Vec<ReceivedExport> {
        self.received.lock().unwrap().iter().filter(|export| export.path == path).cloned().collect()
    }

    fn spans(&self) -> Vec<ReceivedSpan> {
        let requests = self.exports("/v1/traces");
        let requests = requests.iter().map(|export| ProtoMessage::parse(&export.body));
        let scopes = requests.flat_map(|request| request.messages(1)).flat_map(|spans| spans.messages(2));
        scopes.flat_map(|scope| scope.messages(2)).map(|span| received_span(&span)).collect()
    }

    /// Returns the number of values of each series of a metric, as it was sent last, by the values of its attributes.
    fn counts(&self, metric: &str) -> BTreeMap<String, u64> {
        let requests = self.exports("/v1/metrics");
        let requests = requests.iter().map(|export| ProtoMessage::parse(&export.body));
        let scopes = requests.flat_map(|request| request.messages(1)).flat_map(|metrics| metrics.messages(2));
        let found = scopes.flat_map(|scope| scope.messages(2)).filter(|found| found.text(1) == metric);
        let mut counts = BTreeMap::new();
        for point in found.flat_map(|found| found.message(9).messages(1)) {
            let count = point.number(4);
            assert_eq!(point.packed64(6).iter().sum::<u64>(), count, "all values are in buckets");
            let pairs = attributes(&point.messages(9));
            let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let last: &mut u64 = counts.entry(pairs.join(" ")).or_default();
            *last = count.max(*last);
        }
        counts
    }
}

fn read_export(reader: &mut impl std::io::BufRead) -> Option<ReceivedExport> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    if lower.contains("content-encoding: gzip") {
        body = unpacked(&body);
    }
    let path = head.split(' ').nth(1)?.to_owned();
    Some(ReceivedExport { path, headers: lower, body })
}

#[expect(clippy::disallowed_methods, reason = "a program of the system, which ends at once")]
fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut gzip = std::process::Command::new("gzip");
    let mut gzip = gzip.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    gzip.stdin.take().unwrap().write_all(packed).unwrap();
    gzip.wait_with_output().unwrap().stdout
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(entries: &[ProtoMessage]) -> Vec<(String, String)> {
    let value = |any: &ProtoMessage| match any.text(1) {
        text if text.is_empty() => (any.number(2) + any.number(3)).to_string(),
        text => text,
    };
    entries.iter().map(|entry| (entry.text(1), value(&entry.message(2)))).collect()
}

fn received_span(span: &ProtoMessage) -> ReceivedSpan {
    ReceivedSpan {
        trace: hex(&span.bytes(1)),
        span: hex(&span.bytes(2)),
        parent: hex(&span.bytes(4)),
        name: span.text(5),
        kind: span.number(6),
        attributes: attributes(&span.messages(9)),
        events: span.messages(11).iter().map(|event| event.text(2)).collect(),
        is_error: span.message(15).number(3) == 2,
    }
}

impl ReceivedSpan {
    fn get(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

/// A server with tools that show their trace, fail, and ask.
fn peer() -> TestPeer {
    let trace = async |cx: Context, secret: Secret| {
        let trace = cx.trace().map(|trace| trace.to_string()).unwrap_or_default();
        format!("{trace} {}", secret.value)
    };
    let fail = async |secret: Secret| -> Result<String, ToolError> { Err(ToolError::new(secret.value)) };
    let ask = async |cx: Context| -> Result<String, ToolError> {
        let schema =
            json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
        let reply = cx.ask(elicit("Who?", trunkline_protocol::RawJson::from(schema))).await?;
        Ok(reply.content.map(|content| content.to_string()).unwrap_or_default())
    };
    let server = Server::new("peer")
        .with(Tool::new("trace").run(trace))
        .with(Tool::new("fail").run(fail))
        .with(Tool::new("ask").run(ask));
    TestPeer::serving(&server)
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Secret {
    value: String,
}

/// Starts a hub of a peer that exports to an address.
#[track_caller]
fn serve(
    test: &str,
    peer: &TestPeer,
    collector: &str,
    variables: &[(&str, &str)],
) -> (RunningCommand, String) {
    let config = format!("[servers.peer]\nurl = {:?}\n", peer.url());
    let place = HubFolder::new(test, "trunkline.toml", &config);
    let port_file = place.folder.join("address");
    let words = [
        "serve",
        "--trust",
        "--config",
        place.path().to_str().unwrap(),
        "--http",
        "127.0.0.1:0",
        "--port-file",
        port_file.to_str().unwrap(),
    ]
    .map(str::to_owned);
    let fixed = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector),
        ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "50"),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut hub = RunningCommand::start_with(&words, &[&fixed[..], variables].concat());
    hub.wait_for("listening on http://127.0.0.1:");
    let address = std::fs::read_to_string(port_file).unwrap();
    (hub, address.trim_end().to_owned())
}

/// Makes the calls of every kind, and returns the context with which one reached the server.
#[track_caller]
fn make_calls(address: &str) -> String {
    let url = format!("http://{address}/mcp");
    let socket: SocketAddr = address.parse().unwrap();
    let value = format!("value={SENTINEL}");
    let ran = run(&["call", "--era", "legacy", &url, "peer__trace", &value], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let failed = run(&["call", "--era", "modern", &url, "peer__fail", &value], "");
    assert_eq!(failed.code, Some(1), "{failed:?}");
    for era in ["legacy", "modern"] {
        let asked = run(&["call", "--era", era, &url, "peer__ask", "--answer", "name=Ann"], "");
        assert_eq!(asked.code, Some(0), "{asked:?}");
    }
    let mut with_meta = modern(7, "tools/call", call("peer__trace", json!({ "value": SENTINEL })));
    with_meta["params"]["_meta"]["traceparent"] = json!(format!("00-{TRACE}-{PARENT}-01"));
    with_meta["params"]["_meta"]["tracestate"] = json!("v=1");
    let answer = post(socket, &with_meta, &[]).json();
    let carried =
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    // The context of the HTTP request counts where the message has none; one that is not recorded is not exported.
    let plain = modern(8, "tools/call", call("peer__trace", json!({ "value": SENTINEL })));
    let header = format!("00-{}-{PARENT}-01", TRACE.replace('0', "1"));
    assert_eq!(post(socket, &plain, &[("traceparent", &header)]).status, 200);
    let unrecorded = format!("00-{}-{PARENT}-00", TRACE.replace('0', "2"));
    assert_eq!(post(socket, &plain, &[("traceparent", &unrecorded)]).status, 200);
    carried
}

/// Checks the tree of spans of the calls.
#[track_caller]
fn check_spans(spans: &[ReceivedSpan], carried: &str) {
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let below =
        |server: &ReceivedSpan| spans.iter().filter(|span| span.parent == server.span).collect::<Vec<_>>();
    for span in spans {
        let text = format!("{span:?}");
        assert!(!text.contains(SENTINEL) && !text.contains("Ann"), "{text}");
        let is_tool = span.get("gen_ai.operation.name") == Some("execute_tool");
        assert!(is_tool && span.get("mcp.method.name") == Some("tools/call"), "{text}");
        assert_eq!(span.get("network.transport"), Some("tcp"), "{text}");
    }
    let traced = named("tools/call peer__trace");
    assert_eq!(traced.len(), 3, "the unrecorded one is not exported: {spans:#?}");
    for server in &traced {
        let clients = below(server);
        let [client] = &clients[..] else { panic!("{server:?}: {clients:?}") };
        assert_eq!((server.kind, client.kind, &client.trace), (2, 3, &server.trace));
        assert_eq!(
            (client.name.as_str(), client.get("server.address")),
            ("tools/call trace", Some("127.0.0.1"))
        );
        assert!(!server.is_error && !client.is_error);
    }
    // The legacy client's began a trace.
    let legacy = traced.iter().find(|span| span.parent.is_empty()).unwrap();
    assert!(
        legacy.get("mcp.session.id").is_some() && legacy.get("mcp.protocol.version") == Some("2025-11-25")
    );
    let joined = traced.iter().find(|span| span.trace == TRACE).unwrap();
    assert_eq!((joined.parent.as_str(), joined.get("jsonrpc.request.id")), (PARENT, Some("7")));
    let client = below(joined)[0];
    assert_eq!(
        carried.split(' ').next(),
        Some(&*format!("00-{TRACE}-{}-01", client.span)),
        "it is passed on"
    );
    let by_header = TRACE.replace('0', "1");
    assert!(traced.iter().any(|span| span.trace == by_header && span.parent == PARENT), "{traced:#?}");
    let failed = named("tools/call peer__fail");
    assert_eq!(
        (failed.len(), failed[0].get("error.type"), failed[0].is_error),
        (1, Some("tool_error"), true)
    );
    assert!(below(failed[0])[0].is_error);
    // A legacy client sends one request, a modern one a second with the answers.
    let asked = named("tools/call peer__ask");
    assert_eq!(asked.len(), 3, "{asked:#?}");
    let legacy: Vec<_> =
        asked.iter().filter(|span| span.get("mcp.protocol.version") == Some("2025-11-25")).collect();
    assert_eq!(legacy.len(), 1);
    assert_eq!(legacy[0].events, ["input_requested", "input_answered"]);
    assert_eq!(below(legacy[0]).len(), 1, "the server has a session with the hub too");
    let waited: Vec<_> = asked.iter().filter(|span| span.get("trunkline.input_required").is_some()).collect();
    assert_eq!(waited.len(), 1, "{asked:#?}");
}

#[test]
fn collector_gets_the_tree_of_spans_and_the_metrics_of_calls() {
    let (peer, collector) = (peer(), TestCollector::start(&[]));
    let headers = format!("authorization=Bearer%20{SENTINEL}");
    let variables = [
        ("OTEL_EXPORTER_OTLP_HEADERS", headers.as_str()),
        ("OTEL_SERVICE_NAME", "hub of a test"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
    ];
    let (hub, address) = serve("hub_telemetry", &peer, &format!("http://{}", collector.address), &variables);
    let carried = make_calls(&address);
    hub.signal(Signal::TERM);
    let ended = hub.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.stderr.contains(SENTINEL), "{}", ended.stderr);
    check_spans(&collector.spans(), &carried);
    for export in collector.exports("/v1/traces").iter().chain(&collector.exports("/v1/metrics")) {
        assert!(export.headers.contains(&format!("authorization: bearer {SENTINEL}")), "{}", export.headers);
        assert!(export.headers.contains("content-type: application/x-protobuf"), "{}", export.headers);
        let resource = attributes(&ProtoMessage::parse(&export.body).message(1).message(1).messages(1));
        assert!(resource.contains(&("service.name".to_owned(), "hub of a test".to_owned())), "{resource:?}");
        assert!(
            resource.contains(&("deployment.environment.name".to_owned(), "test".to_owned())),
            "{resource:?}"
        );
    }
    // Seven requests of clients and eight to the server, of which one is unrecorded.
    for (metric, least) in [("mcp.server.operation.duration", 8), ("mcp.client.operation.duration", 8)] {
        let counts = collector.counts(metric);
        assert!(counts.values().sum::<u64>() >= least, "{metric}: {counts:?}");
        assert!(counts.keys().any(|with| with.contains("error.type=tool_error")), "{metric}: {counts:?}");
    }
    for metric in ["mcp.server.session.duration", "mcp.client.session.duration"] {
        assert!(!collector.counts(metric).is_empty(), "{metric}");
    }
}

/// A real collector, which reads what it gets and sends it on to another.
struct RotelCollector {
    process: std::process::Child,
    url: String,
}

impl RotelCollector {
    #[expect(clippy::disallowed_methods, reason = "the program of others is what is tested against")]
    fn start(test: &str, next: &TestCollector) -> Self {
        let program = std::env::var("TRUNKLINE_ROTEL").expect("TRUNKLINE_ROTEL is the program");
        let folder = folder(test);
        // It takes no free port by itself.
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (http, grpc) = (free(), free());
        let process = std::process::Command::new(program)
            .args(["start", "--exporter", "otlp", "--otlp-exporter-protocol", "http"])
            .args(["--otlp-http-endpoint", &http.to_string(), "--otlp-grpc-endpoint", &grpc.to_string()])
            .args(["--otlp-exporter-endpoint", &format!("http://{}", next.address)])
            .arg("--pid-file")
            .arg(folder.join("rotel.pid"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("it listens", || std::net::TcpStream::connect(http).ok());
        Self { process, url: format!("http://{http}") }
    }
}

impl Drop for RotelCollector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "`cargo xtask telemetry` installs the collector and runs it"]
fn rotel_understands_the_spans_and_metrics() {
    let (peer, last) = (peer(), TestCollector::start(&[]));
    let collector = RotelCollector::start("rotel", &last);
    let (hub, address) = serve("hub_telemetry_rotel", &peer, &collector.url, &[("OTEL_SERVICE_NAME", "hub")]);
    let carried = make_calls(&address);
    hub.signal(Signal::TERM);
    assert_eq!(hub.wait().code, Some(0));
    let spans = wait_until("all spans arrive", || Some(last.spans()).filter(|spans| spans.len() >= 14));
    check_spans(&spans, &carried);
    wait_until("the metrics arrive", || {
        (!last.counts("mcp.client.session.duration").is_empty()).then_some(())
    });
    assert!(last.counts("mcp.server.operation.duration").values().any(|count| *count > 0));
}

#[test]
fn failing_collector_delays_no_call_and_gets_the_spans_later() {
    let (peer, collector) = (peer(), TestCollector::start(&["503 Busy", "429 Slow", "200 OK"]));
    // Only traces, so that the statuses are theirs.
    let variables = [("OTEL_METRICS_EXPORTER", "none")];
    let endpoint = format!("http://{}", collector.address);
    let (mut hub, address) = serve("hub_telemetry_busy", &peer, &endpoint, &variables);
    let url = format!("http://{address}/mcp");
    let ran = run(&["call", "--era", "modern", &url, "peer__trace", "value=x"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    hub.wait_for("cannot export traces to http://127.0.0.1:");
    wait_until("the spans arrive", || (collector.exports("/v1/traces").len() >= 3).then_some(()));
    hub.wait_for("the collector accepts traces again");
    hub.signal(Signal::TERM);
    let ended = hub.wait();
    assert_eq!(ended.stderr.matches("cannot export").count(), 1, "it is logged once: {}", ended.stderr);
    let spans = collector.exports("/v1/traces");
    assert_eq!(spans[0].body, spans[2].body, "the same request is repeated");
}

#[test]
fn unusable_variable_switches_telemetry_off_and_is_logged() {
    let peer = peer();
    let variables = [("OTEL_EXPORTER_OTLP_HEADERS", SENTINEL)];
    let (mut hub, address) = serve("hub_telemetry_off", &peer, "http://127.0.0.1:9", &variables);
    let ran = run(&["call", &format!("http://{address}/mcp"), "peer__trace", "value=x"], "");
    // Without telemetry a request without a trace reaches the server without one.
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), " x\n"), "{ran:?}");
    hub.signal(Signal::TERM);
    let seen = hub.wait_for("shutting down");
    assert!(!seen.contains(SENTINEL), "{seen}");
}

#[test]
fn bridge_exports_the_calls_of_its_server() {
    let (peer, collector) = (peer(), TestCollector::start(&[]));
    let port_file = folder("bridge_telemetry").join("address");
    let endpoint = format!("http://{}", collector.address);
    let words = ["bridge", "--http", "127.0.0.1:0", "--port-file", port_file.to_str().unwrap()];
    let url = peer.url();
    let words = [&words[..], &[url.as_str()]].concat();
    let mut bridge = RunningCommand::start_with(&words, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    bridge.wait_for("listening on http://127.0.0.1:");
    let address = std::fs::read_to_string(port_file).unwrap();
    let ran = run(&["call", &format!("http://{}/mcp", address.trim_end()), "trace", "value=x"], "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    bridge.signal(Signal::TERM);
    assert_eq!(bridge.wait().code, Some(0));
    let spans = collector.spans();
    let [client, server] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((client.kind, server.kind, &client.parent), (3, 2, &server.span), "{spans:#?}");
    assert!(ran.stdout.contains(&client.span), "the context reaches the server: {ran:?}");
}
