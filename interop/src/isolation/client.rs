use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse, Root};
use trunkline_client::protocol::{Era, LoggingLevel, Refusal, Revision};
use trunkline_client::{BoxFuture, Client, InputHandler, InputOrigin, LogMessage, ProgressUpdate};

use crate::findings::Findings;
use crate::options::IsolationOptions;
use crate::own_messages::{ExpectedAnswer, OwnMessages};

/// The server that is not ours, which has its roots as its state.
const FILESYSTEM: &str = "filesystem";

/// How often a call is tried: while servers start, and while all connections are in use, the hub refuses calls.
const MAX_ATTEMPTS: usize = 60;

/// One in so many calls may be one for which a process is started.
pub(crate) const CALLS_PER_PROCESS: u64 = 100;

const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Reports whether a hub recognises a client from one call to the next: by its session, or by its WebSocket.
pub(crate) fn is_recognised(number: usize) -> bool {
    revision_of(number).era() == Era::Legacy || is_on_websocket(number)
}

fn revision_of(number: usize) -> Revision {
    if number.is_multiple_of(2) { Revision::NEWEST_LEGACY } else { Revision::NEWEST }
}

fn is_on_websocket(number: usize) -> bool {
    number / 2 % 2 == 1
}

/// One of the clients, which knows what is its own by its name.
pub(crate) struct ExaminedClient {
    own: OwnMessages,
    client: Client,
    era: Era,
    capabilities: ClientInput,
    options: Arc<IsolationOptions>,
    /// Numbers that follow from the client's own.
    random: u64,
}

/// The kinds of input requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientInput {
    Nothing,
    Form,
    FormAndRoots,
}

/// Answers questions with the client's own name and folder.
struct OwnAnswers {
    own: OwnMessages,
    input: ClientInput,
}

impl InputHandler for OwnAnswers {
    fn capabilities(&self) -> ClientCapabilities {
        match self.input {
            ClientInput::Nothing => ClientCapabilities::default(),
            ClientInput::Form => ClientCapabilities::default().with_form(),
            ClientInput::FormAndRoots => ClientCapabilities::default().with_form().with_roots(),
        }
    }

    fn answer(
        &self,
        _: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        let answer = match question {
            InputRequest::Form(form) => {
                self.own.check("question", &form.message);
                self.own.findings.asked();
                Ok(InputResponse::accept(Some(json!({ "name": self.own.name }).into())))
            }
            InputRequest::Roots => {
                Ok(InputResponse::Roots(vec![Root { uri: self.own.root(), ..Root::default() }]))
            }
            other => Err(Refusal::INVALID_PARAMS.with_message(format!("unexpected: {other:?}"))),
        };
        Box::pin(std::future::ready(answer))
    }
}

impl ExaminedClient {
    /// Connects: every second client in the modern era, and half of either over WebSocket.
    pub(crate) async fn connect(
        number: usize,
        options: Arc<IsolationOptions>,
        findings: Arc<Findings>,
    ) -> Result<Self, String> {
        let own = OwnMessages::new(format!("c{number}"), &options, findings);
        std::fs::create_dir_all(&own.folder).map_err(|error| error.to_string())?;
        let capabilities = match number % 3 {
            0 => ClientInput::FormAndRoots,
            1 => ClientInput::Form,
            _ => ClientInput::Nothing,
        };
        let answers = OwnAnswers { own: own.clone(), input: capabilities };
        let revision = revision_of(number);
        let url = match is_on_websocket(number) {
            false => options.url.clone(),
            true => options.url.replacen("http", "ws", 1).replace("/mcp", "/ws"),
        };
        let logged = own.clone();
        let on_log = move |message: &LogMessage| {
            let text = message.data.decode::<String>();
            logged.check("log", &text.unwrap_or_else(|_| log_text(message)));
        };
        let builder = Client::builder().input(answers).on_log(on_log).log_level(LoggingLevel::Debug);
        let client = builder.pin(revision).connect(&*url).await.map_err(|error| error.to_string())?;
        let random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1);
        Ok(Self { own, client, era: revision.era(), capabilities, options, random })
    }

    /// Makes calls one after the other, to each server in turn.
    pub(crate) async fn run(mut self, calls: u64) {
        let mut servers = self.options.servers.clone();
        // Without roots that server has nothing to show.
        servers.retain(|server| self.capabilities == ClientInput::FormAndRoots || server != FILESYSTEM);
        for number in 0..calls {
            let at = (number as usize + self.own.name.len()) % servers.len();
            let Some(server) = servers.get(at).map(String::as_str) else { return };
            for attempt in 0..MAX_ATTEMPTS {
                let outcome = match server {
                    FILESYSTEM => self.list_folders().await,
                    server => self.examine(server, number).await,
                };
                let Err(problem) = outcome else { break };
                self.own.findings.refused(server, &problem);
                if attempt + 1 < MAX_ATTEMPTS {
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }

    /// Reports whether a server can ask this client in the middle of a call; `fastmcp` 4 does that in the legacy era.
    fn can_be_asked(&self, server: &str) -> bool {
        self.capabilities != ClientInput::Nothing && (server != "fastmcp-4" || self.era == Era::Legacy)
    }

    async fn examine(&mut self, server: &str, number: u64) -> Result<(), String> {
        let asks = self.can_be_asked(server) && self.below(3) > 0;
        // What was sent the roots of a client without a session serves no other call, so that each such call costs a
        // process.
        let rarity = if self.era == Era::Legacy { 4 } else { CALLS_PER_PROCESS };
        let lists_roots = self.capabilities == ClientInput::FormAndRoots
            && server != "fastmcp-4"
            && self.below(rarity) == 0;
        let arguments = json!({
            "client": self.own.name,
            "call": number,
            "ask": asks,
            "log": self.below(3) == 0,
            "roots": lists_roots,
            "pause": f64::from(u32::try_from(self.below(4)).unwrap_or(0)) / 1000.0,
        });
        let own = self.own.clone();
        let report = move |progress: &ProgressUpdate| {
            own.check("progress", progress.message.as_deref().unwrap_or_default());
        };
        let called = self.client.call(format!("{server}__examine"), arguments).progress(report).await;
        let text = called.map_err(|error| error.to_string())?.text();
        let answer = serde_json::from_str::<Value>(&text).map_err(|_| text.clone())?;
        self.own.check_answer(server, &answer, ExpectedAnswer { asks, lists_roots });
        Ok(())
    }

    /// Lists the folders that the filesystem server allows, which are the roots of its client.
    async fn list_folders(&self) -> Result<(), String> {
        let name = format!("{FILESYSTEM}__list_allowed_directories");
        let result = self.client.call(name, json!({})).await.map_err(|error| error.to_string())?;
        self.own.check_folders(&result.text())
    }
}

/// Returns the text of a log message that is an object: `fastmcp` sends `{"msg": ...}`.
fn log_text(message: &LogMessage) -> String {
    let data = message.data.decode::<Value>().unwrap_or_default();
    data.get("msg").and_then(|text| text.as_str()).map_or_else(|| data.to_string(), str::to_owned)
}
