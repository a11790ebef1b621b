use std::sync::Arc;

use serde_json::{Value, json};
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse, Root};
use trunkline_client::protocol::{Era, LoggingLevel, Refusal, Revision};
use trunkline_client::{BoxFuture, Client, Error, InputHandler, InputOrigin, LogMessage, ProgressUpdate};

use crate::findings::Findings;
use crate::options::IsolationOptions;

/// The server that is not ours, which has its roots as its state.
const FILESYSTEM: &str = "filesystem";

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

/// What a client can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientInput {
    Nothing,
    Form,
    FormAndRoots,
}

/// What belongs to a client, and where anything else is recorded.
#[derive(Clone)]
struct OwnMessages {
    name: String,
    findings: Arc<Findings>,
}

impl OwnMessages {
    fn check(&self, kind: &str, text: &str) {
        if !text.starts_with(&format!("{}/", self.name)) {
            self.findings.record(format!("{kind} `{text}` reached {}", self.name));
        }
    }
}

/// Answers questions with the client's own name and folder.
struct OwnAnswers {
    own: OwnMessages,
    input: ClientInput,
    root: String,
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
                Ok(InputResponse::Roots(vec![Root { uri: self.root.clone(), ..Root::default() }]))
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
        let own = OwnMessages { name: format!("c{number}"), findings };
        let folder = options.scratch.join(&own.name);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let capabilities = match number % 3 {
            0 => ClientInput::FormAndRoots,
            1 => ClientInput::Form,
            _ => ClientInput::Nothing,
        };
        let answers = OwnAnswers {
            own: own.clone(),
            input: capabilities,
            root: format!("file://{}", folder.display()),
        };
        let revision = if number.is_multiple_of(2) { Revision::NEWEST_LEGACY } else { Revision::NEWEST };
        let url = match number / 2 % 2 {
            0 => options.url.clone(),
            _ => options.url.replacen("http", "ws", 1).replace("/mcp", "/ws"),
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
        let servers = self.options.servers.clone();
        for number in 0..calls {
            let at = (number as usize + self.own.name.len()) % servers.len();
            match servers.get(at).map(String::as_str) {
                Some(FILESYSTEM) => self.list_folders().await,
                Some(server) => self.examine(server, number).await,
                None => {}
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

    async fn examine(&mut self, server: &str, number: u64) {
        let asks = self.can_be_asked(server) && self.below(3) > 0;
        let lists_roots =
            self.capabilities == ClientInput::FormAndRoots && server != "fastmcp-4" && self.below(4) == 0;
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
        let text = match called {
            Ok(result) => result.text().clone(),
            Err(error) => return self.fail(server, &error),
        };
        let Ok(answer) = serde_json::from_str::<Value>(&text) else {
            return self.own.findings.failed(format!("{server}: {text}"));
        };
        self.check_answer(server, &answer, asks, lists_roots);
    }

    fn check_answer(&self, server: &str, answer: &Value, asks: bool, lists_roots: bool) {
        let name = self.own.name.as_str();
        let crossed = |what: &str| {
            self.own.findings.record(format!("{what} of {server} for {name}: {answer}"));
        };
        if answer["answer"] != if asks { name } else { "not asked" } {
            crossed("an answer");
        }
        let root = format!("file://{}", self.options.scratch.join(name).display());
        let roots: Vec<&str> =
            answer["roots"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if lists_roots && roots.iter().any(|found| found.trim_end_matches('/') != root) {
            crossed("roots");
        }
        if !self.options.is_shared && answer["served"] != json!([name]) {
            crossed("state");
        }
        self.own.findings.answered(server, answer["process"].as_u64().unwrap_or_default());
    }

    /// Lists the folders that the filesystem server allows, which are the roots of its client.
    async fn list_folders(&self) {
        if self.capabilities != ClientInput::FormAndRoots {
            return;
        }
        let name = format!("{FILESYSTEM}__list_allowed_directories");
        match self.client.call(name, json!({})).await {
            Ok(result) => {
                let (text, own) = (result.text().clone(), self.options.scratch.join(&self.own.name));
                let folders: Vec<&str> = text.lines().skip(1).collect();
                if folders.iter().any(|folder| *folder != own.display().to_string()) {
                    self.own.findings.record(format!("folders for {}: {text}", self.own.name));
                }
                self.own.findings.answered_elsewhere();
            }
            Err(error) => self.fail(FILESYSTEM, &error),
        }
    }

    fn fail(&self, server: &str, error: &Error) {
        self.own.findings.failed(format!("{} at {server}: {error}", self.own.name));
    }
}

/// Returns the text of a log message that is an object: `fastmcp` sends `{"msg": ...}`.
fn log_text(message: &LogMessage) -> String {
    let data = message.data.decode::<Value>().unwrap_or_default();
    data.get("msg").and_then(|text| text.as_str()).map_or_else(|| data.to_string(), str::to_owned)
}
