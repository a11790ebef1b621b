//! What a handler knows of its caller, for callers of every revision over every transport: one table.

use serde_json::{Map, Value, json};
use trunkline_server::Server;

use crate::seen_caller::look;
use crate::service::{Service, VARIABLE, initialize, modern, note, tool, variable};
use crate::transport_link::{TRANSPORTS, TransportLink};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];
const MODERN: &str = "2026-07-28";

/// The transports with callers that are the process at the other end, and have its variables.
const OF_THE_PROCESS: [&str; 4] = ["memory", "lines", "unix", "stdio"];

/// What a client has, or has not.
#[derive(Clone, Debug)]
struct Client {
    info: Option<Value>,
    capabilities: Value,
    roots: Value,
    variable: Option<String>,
}

/// A client of a revision over a transport.
struct CallerCase<'a> {
    name: String,
    revision: &'a str,
    client: &'a Client,
    line: TransportLink,
    calls: u64,
}

impl<'a> CallerCase<'a> {
    async fn open(service: &Service, transport: &str, revision: &'a str, client: &'a Client) -> Self {
        let line = TransportLink::open_as(transport, service, client.variable.as_deref()).await;
        let name = format!("{revision} over {transport}");
        let mut way = Self { name, revision, client, line, calls: 0 };
        if way.is_legacy() {
            let mut hello = initialize(revision);
            hello["params"]["capabilities"] = client.capabilities.clone();
            hello["params"]["clientInfo"] = client.info.clone().unwrap_or_default();
            if client.info.is_none() {
                hello["params"].as_object_mut().unwrap().remove("clientInfo");
            }
            way.line.send(&hello).await;
            let answer = way.line.receive().await;
            assert_eq!(answer["result"]["protocolVersion"], revision, "{}: {answer}", way.name);
            way.line.send(&note("notifications/initialized", json!({}))).await;
        }
        way
    }

    fn is_legacy(&self) -> bool {
        self.revision != MODERN
    }

    /// Calls the tool, answers questions for roots on the way, and returns what it knows.
    async fn look(&mut self, arguments: Value) -> Value {
        let answer = match self.is_legacy() {
            true => self.ask_legacy(arguments).await,
            false => self.ask_modern(arguments).await,
        };
        let said = answer["result"]["content"][0]["text"].as_str();
        let seen = said.and_then(|said| serde_json::from_str(said).ok());
        seen.unwrap_or_else(|| panic!("{}: {answer}", self.name))
    }

    fn answer_to(&self, asked: &Value) -> Value {
        assert_eq!(asked["method"], "roots/list", "{}: {asked}", self.name);
        json!({ "roots": self.client.roots })
    }

    async fn ask_legacy(&mut self, arguments: Value) -> Value {
        self.calls += 1;
        self.line.send(&tool(self.calls, "look", arguments)).await;
        loop {
            let message = self.line.receive().await;
            if message.get("method").is_none() {
                return message;
            }
            let result = self.answer_to(&message);
            self.line.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).await;
        }
    }

    async fn ask_modern(&mut self, arguments: Value) -> Value {
        let mut call = modern(0, "tools/call", json!({ "name": "look", "arguments": arguments }));
        let about = call["params"]["_meta"].as_object_mut().unwrap();
        about.insert(
            "io.modelcontextprotocol/clientCapabilities".to_owned(),
            self.client.capabilities.clone(),
        );
        match &self.client.info {
            Some(info) => about.insert("io.modelcontextprotocol/clientInfo".to_owned(), info.clone()),
            None => about.remove("io.modelcontextprotocol/clientInfo"),
        };
        loop {
            self.calls += 1;
            call["id"] = json!(self.calls);
            self.line.send(&call).await;
            let mut answer = self.line.receive().await;
            let Some(asked) = answer["result"]["inputRequests"].as_object() else { return answer };
            let answers: Map<_, _> =
                asked.iter().map(|(key, asked)| (key.clone(), self.answer_to(asked))).collect();
            call["params"]["inputResponses"] = Value::Object(answers);
            call["params"]["requestState"] = answer["result"]["requestState"].take();
        }
    }
}

/// The kinds of content that a revision has.
fn content_types(revision: &str) -> Vec<&str> {
    let since = ["2024-11-05", "2024-11-05", "2024-11-05", "2025-03-26", "2025-06-18"];
    let kinds = ["text", "image", "resource", "audio", "resource_link"].into_iter().zip(since);
    kinds.filter(|(_, since)| revision >= *since).map(|(kind, _)| kind).collect()
}

/// Opens every transport, and checks what the tool sees against `expected`, which may omit what no client can change.
async fn check(client: &Client, expected: impl Fn(&str) -> Value) {
    for transport in TRANSPORTS.iter().chain(&["stdio"]) {
        let service = Service::start().await;
        for revision in REVISIONS {
            let mut way = CallerCase::open(&service, transport, revision, client).await;
            let (name, is_legacy) = (way.name.clone(), way.is_legacy());
            let mut handles = Vec::new();
            for (arguments, count) in [(json!({}), 1), (json!({}), if is_legacy { 2 } else { 1 })] {
                let mut seen = way.look(arguments).await;
                assert_eq!(seen["count"].take(), count, "{name}: a session has its own state");
                handles.push(seen["handle"].take());
                let caller = seen["caller"].take();
                assert!(!caller.to_string().contains(&variable()), "{name}: names only");
                let named = if seen["variable"] == true { json!([VARIABLE]) } else { json!([]) };
                assert_eq!(caller["env"], named, "{name}");
                let mut expected = expected(transport);
                for (key, value) in [
                    ("has_session", json!(is_legacy)),
                    ("revision", json!(revision)),
                    ("content_types", json!(content_types(revision))),
                    ("hidden", json!(true)),
                    ("handle", Value::Null),
                    ("count", Value::Null),
                    ("caller", Value::Null),
                ] {
                    expected[key] = value;
                }
                assert_eq!(seen, expected, "{name}");
            }
            assert_eq!(handles[0] == handles[1], is_legacy, "{name}: any other caller gets a new handle");
            let again = way.look(json!({ "handle": handles[1] })).await;
            assert_eq!(again["count"], if is_legacy { 3 } else { 2 }, "{name}: or brings its handle");
        }
    }
}

#[tokio::test]
async fn handler_context_is_the_same_over_every_revision_and_transport() {
    let client = Client {
        info: Some(json!({ "name": "peer", "version": "1" })),
        capabilities: json!({ "roots": { "listChanged": true }, "sampling": {} }),
        roots: json!([{ "uri": "file:///usr", "name": "main" }, { "uri": "file:///tmp/other" }]),
        variable: Some(variable()),
    };
    check(&client, |_| {
        json!({
            "client": "peer",
            "sampling": true,
            "variable": true,
            "roots": ["file:///usr", "file:///tmp/other"],
            "primary": "file:///usr",
            "within": true,
            "outside": false,
        })
    })
    .await;
}

#[tokio::test]
async fn absent_caller_properties_are_none() {
    let client = Client { info: None, capabilities: json!({}), roots: json!([]), variable: None };
    check(&client, |transport| {
        json!({
            "client": null,
            "sampling": false,
            // Over pipes the variable is the process's; over HTTP no client sent it.
            "variable": OF_THE_PROCESS.contains(&transport),
            "roots": null,
            "primary": null,
            "within": null,
            "outside": null,
        })
    })
    .await;
}

#[tokio::test]
async fn empty_roots_list_contains_no_path() {
    let capabilities = json!({ "roots": {} });
    let info = Some(json!({ "name": "peer", "version": "1" }));
    let client = Client { info, capabilities, roots: json!([]), variable: None };
    check(&client, |transport| {
        json!({
            "client": "peer",
            "sampling": false,
            "variable": OF_THE_PROCESS.contains(&transport),
            "roots": [],
            "primary": null,
            "within": false,
            "outside": false,
        })
    })
    .await;
}

#[tokio::test]
async fn call_without_a_transport_has_a_context() {
    let seen = Server::new("s").with(look()).call("look", json!({})).await.unwrap().structured.unwrap();
    let seen: Value = serde_json::from_str(seen.as_str()).unwrap();
    assert_eq!((&seen["variable"], &seen["roots"], &seen["count"]), (&json!(false), &Value::Null, &json!(1)));
}
