use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::Notify;
use trunkline_client::{BoxFuture, InputHandler, Origin};
use trunkline_protocol::model::{
    Action, Answer, ClientCapabilities, Content, ElicitResult, Question, Role, Root, SampleResult,
};
use trunkline_protocol::{Members, Refusal};

use super::input::read_input;
use super::options::{AskArgs, ConnectArgs};
use crate::ask::{Dialogue, Given, Reply, fill, play_model, visit};
use crate::exit::{Exit, Failure};
use crate::terminal::{Screen, first_line, terminal_columns};

/// What a user's refusal to answer is told as; the specification has no code of its own for it.
const REJECTED: i64 = -1;

/// Who answers what servers ask: the person at the terminal, as far as there is one, and what was given in advance.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    given: Given,
    /// Somebody sits at the terminal.
    present: bool,
    /// Who writes in place of a model, if somebody does.
    model: Option<Model>,
    roots: Vec<Root>,
    screen: Arc<Screen>,
    /// What the server calls itself, once that is known.
    server: OnceLock<String>,
    /// Two questions at one time are asked one after the other.
    turn: tokio::sync::Mutex<()>,
    /// Why a question could not be answered, for whoever ends the program.
    failure: Mutex<Option<Failure>>,
    failed: Notify,
    /// The server has asked for the roots.
    asked_for_roots: Notify,
}

/// Who answers in place of a model.
#[derive(Clone, Debug)]
enum Model {
    /// The person at the terminal.
    Person,
    /// This text, whatever the question is.
    Text(String),
}

impl Person {
    /// Says who there is.
    ///
    /// # Errors
    /// A root is no folder, or there is nobody to answer for a model.
    pub(crate) fn new(args: &ConnectArgs, ask: &AskArgs, screen: Arc<Screen>) -> Result<Self, Failure> {
        let present = io::stdin().is_terminal() && io::stderr().is_terminal();
        let model = match &ask.sample {
            None => None,
            Some(Some(text)) => Some(Model::Text(given_text(text)?)),
            Some(None) if present => Some(Model::Person),
            Some(None) => {
                return Err(Failure::new(Exit::Usage, "`--sample` needs somebody at a terminal")
                    .hint("`--sample=TEXT` or `--sample=@FILE` answers in advance"));
            }
        };
        let roots = args.roots.iter().map(|folder| root(folder)).collect::<Result<_, _>>()?;
        let shared = Shared {
            given: Given::new(&ask.answer),
            present,
            model,
            roots,
            screen,
            server: OnceLock::new(),
            turn: tokio::sync::Mutex::new(()),
            failure: Mutex::default(),
            failed: Notify::new(),
            asked_for_roots: Notify::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Says whose questions these are.
    pub(crate) fn name_server(&self, name: &str) {
        // A server that connects anew keeps the name by which the person knows it.
        let _ = self.shared.server.set(first_line(name));
    }

    /// Reports whether somebody, or something that was given, answers what the server asks.
    pub(crate) fn can_be_asked(&self) -> bool {
        self.shared.present || !self.shared.given.is_empty()
    }

    /// Reports whether there are roots to tell of.
    pub(crate) fn has_roots(&self) -> bool {
        !self.shared.roots.is_empty()
    }

    /// Waits until the server has asked for the roots.
    ///
    /// Cancel safe: that it has asked is forgotten only when this returns.
    pub(crate) async fn asked_for_roots(&self) {
        self.shared.asked_for_roots.notified().await;
    }

    /// Waits for a question that could not be answered, and returns why.
    ///
    /// Cancel safe: the reason is taken only when this returns.
    pub(crate) async fn failed(&self) -> Failure {
        loop {
            self.shared.failed.notified().await;
            if let Some(failure) = self.shared.failure.lock().take() {
                return failure;
            }
        }
    }
}

impl InputHandler for Person {
    fn capabilities(&self) -> ClientCapabilities {
        let shared = &self.shared;
        let mut capabilities = ClientCapabilities::default();
        // Where nobody would answer, the server is not to ask.
        if self.can_be_asked() {
            capabilities = capabilities.with_form().with_url();
        }
        if shared.model.is_some() {
            capabilities = capabilities.with_sampling();
        }
        if !shared.roots.is_empty() {
            capabilities = capabilities.with_roots();
        }
        capabilities
    }

    fn answer(&self, _: Origin, question: Question) -> BoxFuture<'_, Result<Answer, Refusal>> {
        Box::pin(async move {
            if let Question::Roots = question {
                self.shared.asked_for_roots.notify_one();
                return Ok(Answer::Roots(self.shared.roots.clone()));
            }
            let _turn = self.shared.turn.lock().await;
            let shared = Arc::clone(&self.shared);
            // Nothing can interrupt a read of the terminal, so that it must not hold up anything else.
            let answered = tokio::task::spawn_blocking(move || shared.ask(&question)).await;
            answered.unwrap_or_else(|_| Err(Refusal::INTERNAL))
        })
    }
}

impl Shared {
    fn ask(&self, question: &Question) -> Result<Answer, Refusal> {
        let asker = self.server.get().map_or("the server", String::as_str);
        let mut terminal = AtTerminal { screen: &self.screen };
        let person = self.present.then_some(&mut terminal as &mut dyn Dialogue);
        self.screen.clear();
        let reply = match question {
            Question::Form(form) => fill(form, asker, &self.given, person),
            Question::Url(url) => visit(url, asker, &self.given, person),
            Question::Sample(sample) => {
                if let Some(Model::Text(text)) = &self.model {
                    return Ok(Answer::Sample(sampled(text.clone())));
                }
                let answer = person.map(|person| play_model(sample, asker, terminal_columns(), person));
                return match answer {
                    Some(Ok(Some(text))) => Ok(Answer::Sample(sampled(text))),
                    _ => Err(Refusal::application(REJECTED, "the user gave no answer")),
                };
            }
            Question::Roots => return Ok(Answer::Roots(self.roots.clone())),
        };
        match reply {
            Ok(reply) => Ok(Answer::Elicit(elicited(reply))),
            Err(failure) => {
                *self.failure.lock() = Some(failure);
                self.failed.notify_one();
                Err(Refusal::application(REJECTED, "there is nobody to answer"))
            }
        }
    }
}

/// The terminal: prompts on standard error, lines from standard input.
struct AtTerminal<'s> {
    screen: &'s Screen,
}

impl Dialogue for AtTerminal<'_> {
    fn say(&mut self, words: &str) {
        self.screen.insist(words);
    }

    fn ask(&mut self, prompt: &str) -> io::Result<Option<String>> {
        self.screen.insist(prompt);
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line)? == 0 {
            self.screen.insist("\n");
            return Ok(None);
        }
        Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
    }
}

/// Takes a text as it is, or that of a file.
fn given_text(text: &str) -> Result<String, Failure> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    read_input(file).map_err(|error| {
        Failure::configuration(format!("`--sample`: file {file} cannot be read: {error}"))
            .hint("a text that begins with @ is the name of a file")
    })
}

fn elicited(reply: Reply) -> ElicitResult {
    let (action, content) = match reply {
        Reply::Accept(content) => (Action::Accept, content),
        Reply::Decline => (Action::Decline, None),
        Reply::Cancel => (Action::Cancel, None),
    };
    ElicitResult { action, content, rest: Members::new() }
}

fn sampled(text: String) -> SampleResult {
    SampleResult {
        role: Role::Assistant,
        content: vec![Content::text(text)],
        model: "human".to_owned(),
        stop_reason: Some("endTurn".to_owned()),
        meta: None,
        rest: Members::new(),
    }
}

/// Makes a root of a folder that is there.
fn root(folder: &Path) -> Result<Root, Failure> {
    let whole = folder.canonicalize().ok().filter(|path| path.is_dir());
    let whole = whole.ok_or_else(|| {
        Failure::configuration(format!("root {} is not a folder", folder.display()))
            .hint("give a folder that is there")
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
    use trunkline_protocol::Raw;

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
    fn what_a_person_did_is_told_in_the_words_of_the_protocol() {
        let accepted = elicited(Reply::Accept(Some(Raw::EMPTY_OBJECT)));
        assert_eq!((accepted.action, accepted.content), (Action::Accept, Some(Raw::EMPTY_OBJECT)));
        assert_eq!(elicited(Reply::Decline).action, Action::Decline);
        assert_eq!(elicited(Reply::Cancel).content, None);
    }
}
