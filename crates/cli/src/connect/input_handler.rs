use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::Notify;
use trunkline_client::{BoxFuture, InputHandler, InputOrigin};
use trunkline_protocol::model::{
    ClientCapabilities, Content, CreateMessageResult, ElicitAction, ElicitResult, InputRequest,
    InputResponse, Role, Root,
};
use trunkline_protocol::{JsonObject, Refusal};

use super::input::read_input;
use super::options::{AnswerArgs, ConnectArgs};
use crate::exit::{CliFailure, ExitReason};
use crate::terminal::{StderrScreen, first_line, fit_lines, terminal_columns};
use crate::user_input::{
    ElicitationReply, InteractiveTerminal, PresetAnswers, confirm_url, fill_form, prompt_for_sample,
};

/// The error code for a request that the user declined; the specification defines none.
const USER_REJECTED: i64 = -1;

/// Responds to input requests: from the user at the terminal, if there is one, and from answers given in advance.
#[derive(Clone, Debug)]
pub(crate) struct TerminalInputHandler {
    shared: Arc<InputHandlerState>,
}

#[derive(Debug)]
struct InputHandlerState {
    preset_answers: PresetAnswers,
    /// There is an interactive terminal.
    has_terminal: bool,
    /// The responder to sampling requests, if sampling is allowed.
    sampling: Option<SamplingResponder>,
    roots: Vec<Root>,
    screen: Arc<StderrScreen>,
    /// What the server calls itself, once that is known.
    server: OnceLock<String>,
    /// Serializes concurrent input requests.
    prompt_lock: tokio::sync::Mutex<()>,
    /// Why an input request could not be answered; becomes the failure of the command.
    failure: Mutex<Option<CliFailure>>,
    failed: Notify,
    /// The server has requested the roots.
    roots_requested: Notify,
}

/// Who answers in place of a model.
#[derive(Clone, Debug)]
enum SamplingResponder {
    /// The user at the terminal.
    User,
    /// This text, whatever the question is.
    Text(String),
}

impl TerminalInputHandler {
    /// Creates the handler from the command line.
    ///
    /// # Errors
    /// A root is not a folder, or `--sample` is given without a terminal.
    pub(crate) fn new(
        args: &ConnectArgs,
        ask: &AnswerArgs,
        screen: Arc<StderrScreen>,
    ) -> Result<Self, CliFailure> {
        let present = io::stdin().is_terminal() && io::stderr().is_terminal();
        let model = match &ask.sample {
            None => None,
            Some(Some(text)) => Some(SamplingResponder::Text(text_or_file(text)?)),
            Some(None) if present => Some(SamplingResponder::User),
            Some(None) => {
                return Err(CliFailure::new(ExitReason::Usage, "`--sample` needs a terminal")
                    .hint("answer in advance with `--sample=TEXT` or `--sample=@FILE`"));
            }
        };
        let roots = args.roots.iter().map(|folder| root(folder)).collect::<Result<_, _>>()?;
        let shared = InputHandlerState {
            preset_answers: PresetAnswers::new(&ask.answer),
            has_terminal: present,
            sampling: model,
            roots,
            screen,
            server: OnceLock::new(),
            prompt_lock: tokio::sync::Mutex::new(()),
            failure: Mutex::default(),
            failed: Notify::new(),
            roots_requested: Notify::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Sets the name of the server that sends the input requests.
    pub(crate) fn set_server_name(&self, name: &str) {
        // After a reconnect the server keeps the name that the user knows.
        let _ = self.shared.server.set(first_line(name));
    }

    /// Reports whether the user or a preset answer can respond to input requests.
    pub(crate) fn can_answer(&self) -> bool {
        self.shared.has_terminal || !self.shared.preset_answers.is_empty()
    }

    /// Reports whether there are roots to provide.
    pub(crate) fn has_roots(&self) -> bool {
        !self.shared.roots.is_empty()
    }

    /// Waits until the server has requested the roots.
    ///
    /// Cancel safe: the notification is consumed only when this returns.
    pub(crate) async fn roots_requested(&self) {
        self.shared.roots_requested.notified().await;
    }

    /// Waits for a question that could not be answered, and returns why.
    ///
    /// Cancel safe: the reason is taken only when this returns.
    pub(crate) async fn failed(&self) -> CliFailure {
        loop {
            self.shared.failed.notified().await;
            if let Some(failure) = self.shared.failure.lock().take() {
                return failure;
            }
        }
    }
}

impl InputHandler for TerminalInputHandler {
    fn capabilities(&self) -> ClientCapabilities {
        let shared = &self.shared;
        let mut capabilities = ClientCapabilities::default();
        // Elicitation is declared only if it can be answered.
        if self.can_answer() {
            capabilities = capabilities.with_form().with_url();
        }
        if shared.sampling.is_some() {
            capabilities = capabilities.with_sampling();
        }
        if !shared.roots.is_empty() {
            capabilities = capabilities.with_roots();
        }
        capabilities
    }

    fn answer(
        &self,
        _: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        Box::pin(async move {
            if let InputRequest::Roots = question {
                self.shared.roots_requested.notify_one();
                return Ok(InputResponse::Roots(self.shared.roots.clone()));
            }
            let _turn = self.shared.prompt_lock.lock().await;
            let shared = Arc::clone(&self.shared);
            // Nothing can interrupt a read of the terminal, so that it must not hold up anything else.
            let answered = tokio::task::spawn_blocking(move || shared.respond(&question)).await;
            answered.unwrap_or_else(|_| Err(Refusal::INTERNAL))
        })
    }
}

impl InputHandlerState {
    fn respond(&self, question: &InputRequest) -> Result<InputResponse, Refusal> {
        let server = self.server.get().map_or("the server", String::as_str);
        let mut terminal = StdioTerminal { screen: &self.screen };
        let prompt = self.has_terminal.then_some(&mut terminal as &mut dyn InteractiveTerminal);
        self.screen.clear_bar();
        let reply = match question {
            InputRequest::Form(form) => fill_form(form, server, &self.preset_answers, prompt),
            InputRequest::Url(url) => confirm_url(url, server, &self.preset_answers, prompt),
            InputRequest::Sampling(sample) => {
                if let Some(SamplingResponder::Text(text)) = &self.sampling {
                    return Ok(InputResponse::Sampling(sample_result(text.clone())));
                }
                let answer =
                    prompt.map(|prompt| prompt_for_sample(sample, server, terminal_columns(), prompt));
                return match answer {
                    Some(Ok(Some(text))) => Ok(InputResponse::Sampling(sample_result(text))),
                    _ => Err(Refusal::application(USER_REJECTED, "the user did not answer")),
                };
            }
            InputRequest::Roots => return Ok(InputResponse::Roots(self.roots.clone())),
        };
        match reply {
            Ok(reply) => Ok(InputResponse::Elicit(elicit_result(reply))),
            Err(failure) => {
                *self.failure.lock() = Some(failure);
                self.failed.notify_one();
                Err(Refusal::application(USER_REJECTED, "no user is available to answer"))
            }
        }
    }
}

/// The terminal: prompts on standard error, lines from standard input.
struct StdioTerminal<'s> {
    screen: &'s StderrScreen,
}

impl InteractiveTerminal for StdioTerminal<'_> {
    fn print(&mut self, words: &str) {
        self.screen.print_always(&fit_lines(words, terminal_columns()));
    }

    fn read_line(&mut self, prompt: &str) -> io::Result<Option<String>> {
        self.screen.print_always(&fit_lines(prompt, terminal_columns()));
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            self.screen.print_always("\n");
            return Ok(None);
        }
        Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

/// Returns a literal text, or the contents of a file.
fn text_or_file(text: &str) -> Result<String, CliFailure> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    read_input(file).map_err(|error| {
        CliFailure::configuration(format!("`--sample`: cannot read {file}: {error}"))
            .hint("a text that begins with @ is a file name")
    })
}

fn elicit_result(reply: ElicitationReply) -> ElicitResult {
    let (action, content) = match reply {
        ElicitationReply::Accept(content) => (ElicitAction::Accept, content),
        ElicitationReply::Decline => (ElicitAction::Decline, None),
        ElicitationReply::Cancel => (ElicitAction::Cancel, None),
    };
    ElicitResult { action, content, rest: JsonObject::new() }
}

fn sample_result(text: String) -> CreateMessageResult {
    CreateMessageResult {
        role: Role::Assistant,
        content: vec![Content::text(text)],
        model: "human".to_owned(),
        stop_reason: Some("endTurn".to_owned()),
        meta: None,
        rest: JsonObject::new(),
    }
}

/// Creates a root from an existing folder.
fn root(folder: &Path) -> Result<Root, CliFailure> {
    let whole = folder.canonicalize().ok().filter(|path| path.is_dir());
    let whole = whole.ok_or_else(|| {
        CliFailure::configuration(format!("root {} is not a folder", folder.display()))
            .hint("use an existing folder")
    })?;
    let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Root { uri: file_uri(&whole.to_string_lossy()), name, ..Root::default() })
}

fn file_uri(path: &str) -> String {
    let mut uri = String::from("file://");
    if !path.starts_with('/') {
        uri.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            b'\\' if cfg!(windows) => uri.push('/'),
            b':' if cfg!(windows) => uri.push(':'),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use trunkline_protocol::RawJson;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn roots_are_file_uris() {
        for (path, uri) in
            [("/w/p1", "file:///w/p1"), ("/a b/ü#?%", "file:///a%20b/%C3%BC%23%3F%25"), ("/", "file:///")]
        {
            assert_eq!(file_uri(path), uri, "{path}");
        }
        assert!(root(Path::new("/no/such/folder")).is_err());
        assert_eq!(root(Path::new("/")).unwrap().uri, "file:///");
    }

    #[test]
    fn user_replies_map_to_elicitation_actions() {
        let accepted = elicit_result(ElicitationReply::Accept(Some(RawJson::EMPTY_OBJECT)));
        assert_eq!((accepted.action, accepted.content), (ElicitAction::Accept, Some(RawJson::EMPTY_OBJECT)));
        assert_eq!(elicit_result(ElicitationReply::Decline).action, ElicitAction::Decline);
        assert_eq!(elicit_result(ElicitationReply::Cancel).content, None);
    }
}
