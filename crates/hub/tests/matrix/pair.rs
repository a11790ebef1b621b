//! A client of one revision, a server of another, and the bridge between them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use trunkline_client::protocol::model::{Answer, ClientCapabilities, Question};
use trunkline_client::protocol::{Level, Refusal, Revision};
use trunkline_client::{BoxFuture, Builder, Client, Error, InputHandler, LogMessage, Origin};
use trunkline_config::{Program, Reach, ServerConfig, ServerName};
use trunkline_hub::{Connector, Hub, HubOptions};
use trunkline_server::{Host, HostOptions, ServerHandle};

use crate::server::{Life, server};

/// Longer than anything here may take; on the paused clock a wait that never ends gets here at once.
const DEADLINE: Duration = Duration::from_secs(7200);

/// Everything of one pair of revisions.
pub(crate) struct Pair {
    pub(crate) client: Client,
    pub(crate) far: ServerHandle,
    pub(crate) life: Life,
    pub(crate) answers: Answers,
    pub(crate) heard: Arc<Mutex<Vec<(Level, String)>>>,
    /// It is there for as long as the pair.
    _hub: Hub,
}

impl Pair {
    /// Puts a bridge between a client of one revision and a server of another.
    pub(crate) async fn new(down: Revision, up: Revision) -> Self {
        let life = Life::default();
        let far = server(&life).handle().unwrap();
        let host = Host::new(far.clone(), HostOptions::default()).unwrap();
        let options = HubOptions { connector: Arc::new(Here { host, pin: up }), ..HubOptions::default() };
        let name = ServerName::parse("far").unwrap();
        let config = ServerConfig::new(name, Reach::Program(Program::new("in this process")));
        let hub = within("the bridge", Hub::bridge(config, options)).await.unwrap();
        let front = Host::new(hub.clone(), HostOptions::default()).unwrap();
        let (answers, heard) = (Answers::default(), Arc::new(Mutex::new(Vec::new())));
        let told = heard.clone();
        let note =
            move |message: &LogMessage| told.lock().unwrap().push((message.level, message.data.to_string()));
        let builder = Client::builder().input(answers.clone()).on_log(note).pin(down);
        let client = within("the client", builder.connect(front)).await.unwrap();
        assert_eq!(client.server().revision, down);
        Self { client, far, life, answers, heard, _hub: hub }
    }
}

/// Connects to the server in this process, in one revision.
struct Here {
    host: Host,
    pin: Revision,
}

impl Connector for Here {
    fn connect(&self, _: &ServerConfig, builder: Builder) -> BoxFuture<'static, Result<Client, Error>> {
        Box::pin(builder.pin(self.pin).connect(self.host.clone()))
    }
}

/// Answers by a function that can be replaced.
#[derive(Clone)]
pub(crate) struct Answers {
    answer: Arc<Mutex<Arc<AnswerFn>>>,
    asked: Arc<Mutex<Vec<Question>>>,
}

type AnswerFn = dyn Fn(&Question) -> (Duration, Result<Answer, Refusal>) + Send + Sync;

impl Default for Answers {
    fn default() -> Self {
        let nobody = |question: &Question| -> (Duration, Result<Answer, Refusal>) {
            panic!("nothing should be asked: {question:?}")
        };
        Self { answer: Arc::new(Mutex::new(Arc::new(nobody))), asked: Arc::default() }
    }
}

impl Answers {
    /// Answers from now on by a function.
    pub(crate) fn by(&self, answer: impl Fn(&Question) -> Answer + Send + Sync + 'static) {
        self.after(Duration::ZERO, answer);
    }

    /// Answers from now on by a function, and takes a while for it.
    pub(crate) fn after(
        &self,
        delay: Duration,
        answer: impl Fn(&Question) -> Answer + Send + Sync + 'static,
    ) {
        *self.answer.lock().unwrap() = Arc::new(move |question| (delay, Ok(answer(question))));
        self.asked.lock().unwrap().clear();
    }

    /// Returns how often something was asked.
    pub(crate) fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl InputHandler for Answers {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots()
    }

    fn answer(&self, _: Origin, question: Question) -> BoxFuture<'_, Result<Answer, Refusal>> {
        // A session is asked for its roots by the way, which no check is about.
        if !matches!(question, Question::Roots) {
            self.asked.lock().unwrap().push(question.clone());
        }
        let answer = self.answer.lock().unwrap().clone();
        Box::pin(async move {
            if matches!(question, Question::Roots) {
                return Ok(roots());
            }
            let (delay, answer) = answer(&question);
            tokio::time::sleep(delay).await;
            answer
        })
    }
}

pub(crate) fn roots() -> Answer {
    let root =
        trunkline_client::protocol::model::Root { uri: "file:///home".to_owned(), ..Default::default() };
    Answer::Roots(vec![root])
}

/// Waits for something that must happen.
pub(crate) async fn within<T>(what: &str, future: impl IntoFuture<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future.into_future()).await {
        Ok(done) => done,
        Err(_) => panic!("nothing came of {what}"),
    }
}
