//! A stateful server that does not attribute its messages to calls: every input request, progress report and log message
//! of a call reaches the client that made the call, and no other.
//!
//! `ISOLATION_CALLS` and `ISOLATION_SEED` make it a campaign of any length.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use trunkline_client::protocol::LoggingLevel;
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_client::{Client, LogMessage, ProgressUpdate};
use trunkline_hub::{AnonymousClients, Hub, HubLimits};
use trunkline_session::Principal;

use crate::support::{
    NEW, OLD, RecordingHandler, ScriptConnection, ScriptReply, ScriptedServer, TestServers, client, eager,
    quick, script, serve_hub, serve_hub_over_http, text_result, within,
};

/// Numbers that follow from a seed.
#[derive(Clone)]
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A number from the environment, for a longer campaign.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.replace('_', "").parse().unwrap())
}

/// The questions of the server that wait for their answers.
type OpenRequests = Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>;

/// A server that follows the arguments of each call: it waits, reports progress, logs, requests input, and waits again.
/// It continues cancelled calls.
fn examiner() -> (ScriptedServer, trunkline_client::transport::ChannelOpener) {
    let open = OpenRequests::default();
    script(move |peer, message| match message["method"].as_str() {
        Some("initialize") => ScriptReply::Result(json!({
            "protocolVersion": OLD.as_str(),
            "serverInfo": { "name": "examiner", "version": "1" },
            "capabilities": { "tools": {}, "logging": {} },
        })),
        Some("logging/setLevel") => ScriptReply::Result(json!({})),
        Some("tools/call") => {
            tokio::spawn(examine(peer.clone(), message.clone(), open.clone()));
            ScriptReply::Nothing
        }
        None => {
            let answered = message["id"].as_str().and_then(|id| open.lock().unwrap().remove(id));
            if let Some(waiting) = answered {
                let _ = waiting.send(message["result"].clone());
            }
            ScriptReply::Nothing
        }
        _ => ScriptReply::AsUsual,
    })
}

async fn examine(peer: ScriptConnection, call: Value, open: OpenRequests) {
    let arguments = &call["params"]["arguments"];
    let name = format!("{}/{}", arguments["client"].as_str().unwrap(), arguments["call"]);
    let pause = || async {
        for _ in 0..arguments["pause"].as_u64().unwrap() {
            tokio::task::yield_now().await;
        }
    };
    let token = &call["params"]["_meta"]["progressToken"];
    let report = json!({ "progressToken": token, "progress": 1, "message": name });
    pause().await;
    peer.send_now(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": report }));
    if arguments["log"] == true {
        let line = json!({ "level": "warning", "data": name });
        peer.send_now(&json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": line }));
    }
    pause().await;
    let mut result = "not asked".to_owned();
    if arguments["ask"] == true {
        let (answer, answered) = oneshot::channel();
        open.lock().unwrap().insert(name.clone(), answer);
        let schema =
            json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
        let params = json!({ "message": name, "requestedSchema": schema });
        peer.send_now(
            &json!({ "jsonrpc": "2.0", "id": name, "method": "elicitation/create", "params": params }),
        );
        let answer = answered.await.unwrap_or_default();
        result = answer["content"]["name"].as_str().map_or_else(|| answer.to_string(), str::to_owned);
    }
    pause().await;
    peer.send_now(&json!({ "jsonrpc": "2.0", "id": call["id"], "result": text_result(&result) }));
}

/// What reached a client that was not meant for it.
type CrossedMessages = Arc<Mutex<Vec<String>>>;

/// One of the clients, which knows what is its own by its name.
struct IsolatedClient {
    name: String,
    client: Client,
    crossed: CrossedMessages,
}

impl IsolatedClient {
    /// Connects: in the legacy era, in the modern era over a connection, or over HTTP, where each request is by itself.
    async fn connect(hub: &Hub, number: usize, address: &str, crossed: &CrossedMessages) -> Self {
        let name = format!("c{number}");
        let own = OwnMessageCheck { name: name.clone(), crossed: crossed.clone() };
        let asked = own.clone();
        let answers = RecordingHandler::new(move |question: &InputRequest| {
            let InputRequest::Form(form) = question else { panic!("{question:?}") };
            asked.check("question", &form.message);
            Ok(InputResponse::accept(Some(json!({ "name": asked.name }).into())))
        })
        .declaring(ClientCapabilities::default().with_form());
        let logged = own.clone();
        let log = move |message: &LogMessage| logged.check("log", &message.data.decode::<String>().unwrap());
        let builder = Client::builder().input(answers).on_log(log).log_level(LoggingLevel::Debug);
        let client = match number % 3 {
            0 => client(&serve_hub(hub), builder.pin(OLD), Principal::Anonymous).await,
            1 => client(&serve_hub(hub), builder.pin(NEW), Principal::Anonymous).await,
            _ => within(builder.pin(NEW).connect(address)).await.unwrap(),
        };
        Self { name, client, crossed: crossed.clone() }
    }

    /// Makes calls one after the other, some of which are given up in the middle; returns how many were answered.
    async fn run(self, calls: u64, mut random: SeededRandom) -> u64 {
        let mut answered = 0;
        for number in 0..calls {
            let asks = random.below(3) > 0;
            let arguments = json!({
                "client": self.name,
                "call": number,
                "ask": asks,
                "pause": random.below(20),
                "log": random.below(4) == 0,
            });
            let own = OwnMessageCheck { name: self.name.clone(), crossed: self.crossed.clone() };
            let report = move |progress: &ProgressUpdate| {
                own.check("progress", progress.message.as_deref().unwrap_or_default());
            };
            let call = self.client.call("a__t", arguments).progress(report).into_future();
            let is_given_up = random.below(12) == 0;
            let patience = Duration::from_micros(random.below(3_000));
            let outcome = match is_given_up {
                true => tokio::time::timeout(patience, call).await.ok(),
                false => Some(within(call).await),
            };
            let expected = if asks { &self.name } else { "not asked" };
            match outcome {
                Some(Ok(said)) if said.text() == expected => answered += 1,
                Some(other) => {
                    self.crossed.lock().unwrap().push(format!("{} of {}: {other:?}", number, self.name));
                }
                None => {}
            }
        }
        answered
    }
}

/// Notes what is not its own.
#[derive(Clone)]
struct OwnMessageCheck {
    name: String,
    crossed: CrossedMessages,
}

impl OwnMessageCheck {
    fn check(&self, what: &str, text: &str) {
        if !text.starts_with(&format!("{}/", self.name)) {
            self.crossed.lock().unwrap().push(format!("{what} `{text}` reached {}", self.name));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_messages_caused_by_a_call_never_reach_another_client() {
    // On the loopback they share the server's processes, elsewhere they do not.
    for anonymous in [AnonymousClients::SingleUser, AnonymousClients::Isolated] {
        campaign(anonymous).await;
    }
}

#[expect(clippy::print_stdout, reason = "a campaign says what it took")]
async fn campaign(anonymous: AnonymousClients) {
    let (clients, calls) = (20, setting("ISOLATION_CALLS", 600));
    let mut random = SeededRandom(setting("ISOLATION_SEED", 0x5eed_1e55));
    let town = TestServers::default();
    let (heard, opener) = examiner();
    town.add_script("a", opener, OLD);
    let limits = HubLimits { extra_connection_delay: Duration::from_millis(5), ..quick() };
    let hub = town.hub_for(anonymous, limits);
    within(hub.set_servers(vec![eager("a")])).await;
    let address = serve_hub_over_http(&hub).await;
    let crossed = CrossedMessages::default();
    let mut running = Vec::new();
    for number in 0..clients {
        let asker = IsolatedClient::connect(&hub, number, &address, &crossed).await;
        running
            .push(tokio::spawn(asker.run(calls / clients as u64, SeededRandom(random.below(u64::MAX) | 1))));
    }
    let mut answered = 0;
    for client in running {
        answered += client.await.unwrap();
    }
    let crossed = crossed.lock().unwrap().clone();
    assert!(
        crossed.is_empty(),
        "{} of {calls} calls: {:#?}",
        crossed.len(),
        &crossed[..crossed.len().min(10)]
    );
    assert!(answered > calls * 3 / 4, "{answered} of {calls}");
    let connections = heard.of("initialize").len();
    println!(
        "{anonymous:?}: {calls} calls of {clients} clients, {answered} answered, over {connections} connections"
    );
}
