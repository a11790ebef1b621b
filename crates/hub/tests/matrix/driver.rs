//! A client in front of a bridge: the notifications that it gets, and its responses to input requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::Value;
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_client::protocol::{LoggingLevel, Refusal, Revision};
use trunkline_client::transport::Target;
use trunkline_client::{BoxFuture, Client, Error, InputHandler, InputOrigin, LogMessage};

/// Longer than anything here may take; on the paused clock a wait that never ends gets here at once.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A client of one revision, and the notifications that it got.
pub(crate) struct MatrixClient {
    pub(crate) client: Client,
    pub(crate) answers: SwappableHandler,
    pub(crate) heard: Arc<Mutex<Vec<(LoggingLevel, String)>>>,
}

impl MatrixClient {
    /// Connects in one revision.
    ///
    /// # Errors
    /// The server does not support the revision.
    pub(crate) async fn connect(target: impl Into<Target>, revision: Revision) -> Result<Self, Error> {
        let (answers, heard) = (SwappableHandler::default(), Arc::new(Mutex::new(Vec::new())));
        let told = heard.clone();
        let note =
            move |message: &LogMessage| told.lock().unwrap().push((message.level, message.data.to_string()));
        let builder = Client::builder().input(answers.clone()).on_log(note).pin(revision);
        let client = within("the client", builder.connect(target)).await?;
        assert_eq!(client.server().revision, revision);
        let _ = answers.client.set(client.clone());
        Ok(Self { client, answers, heard })
    }

    /// Returns a name that no other call has.
    pub(crate) fn unique() -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Answers by a function that can be replaced.
#[derive(Clone)]
pub(crate) struct SwappableHandler {
    answer: Arc<Mutex<Arc<AnswerFn>>>,
    asked: Arc<Mutex<Vec<InputRequest>>>,
    /// The call to make before a response is sent, and the client to make it.
    first: Arc<Mutex<Option<(&'static str, Value)>>>,
    client: Arc<OnceLock<Client>>,
}

type AnswerFn = dyn Fn(&InputRequest) -> InputResponse + Send + Sync;

impl Default for SwappableHandler {
    fn default() -> Self {
        let nobody =
            |question: &InputRequest| -> InputResponse { panic!("nothing should be asked: {question:?}") };
        Self {
            answer: Arc::new(Mutex::new(Arc::new(nobody))),
            asked: Arc::default(),
            first: Arc::default(),
            client: Arc::default(),
        }
    }
}

impl SwappableHandler {
    /// Answers from now on by a function.
    pub(crate) fn by(&self, answer: impl Fn(&InputRequest) -> InputResponse + Send + Sync + 'static) {
        *self.answer.lock().unwrap() = Arc::new(answer);
        *self.first.lock().unwrap() = None;
        self.asked.lock().unwrap().clear();
    }

    /// Answers from now on by a function, each time after a call of a tool.
    pub(crate) fn after_call(
        &self,
        tool: &'static str,
        arguments: Value,
        answer: impl Fn(&InputRequest) -> InputResponse + Send + Sync + 'static,
    ) {
        self.by(answer);
        *self.first.lock().unwrap() = Some((tool, arguments));
    }

    /// Returns the number of input requests.
    pub(crate) fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl InputHandler for SwappableHandler {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots()
    }

    fn answer(
        &self,
        _: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        // A session may get requests for roots at any time, which no check is about.
        if !matches!(question, InputRequest::Roots) {
            self.asked.lock().unwrap().push(question.clone());
        }
        let (answer, first) = (self.answer.lock().unwrap().clone(), self.first.lock().unwrap().clone());
        Box::pin(async move {
            if matches!(question, InputRequest::Roots) {
                return Ok(roots());
            }
            if let (Some((tool, arguments)), Some(client)) = (first, self.client.get()) {
                client.call(tool, arguments).await.unwrap();
            }
            Ok(answer(&question))
        })
    }
}

pub(crate) fn roots() -> InputResponse {
    let root =
        trunkline_client::protocol::model::Root { uri: "file:///home".to_owned(), ..Default::default() };
    InputResponse::Roots(vec![root])
}

/// Waits for something that must happen.
pub(crate) async fn within<T>(what: &str, future: impl IntoFuture<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future.into_future()).await {
        Ok(done) => done,
        Err(_) => panic!("nothing came of {what}"),
    }
}
