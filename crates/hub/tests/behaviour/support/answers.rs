use std::sync::{Arc, Mutex};

use trunkline_client::protocol::Refusal;
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse, Root};
use trunkline_client::{BoxFuture, InputHandler, InputOrigin};

/// Responds by a function, to roots by a list, and records the other input requests.
#[derive(Clone)]
pub(crate) struct RecordingHandler {
    capabilities: ClientCapabilities,
    answer: Arc<AnswerFn>,
    roots: Arc<Mutex<Vec<Root>>>,
    asked: Arc<Mutex<Vec<InputRequest>>>,
}

type AnswerFn = dyn Fn(&InputRequest) -> BoxFuture<'static, Result<InputResponse, Refusal>> + Send + Sync;

impl RecordingHandler {
    /// Responds to every kind of input request.
    pub(crate) fn new(
        answer: impl Fn(&InputRequest) -> Result<InputResponse, Refusal> + Send + Sync + 'static,
    ) -> Self {
        Self::with_future(move |question| Box::pin(std::future::ready(answer(question))))
    }

    /// Answers in its own time.
    pub(crate) fn with_future(
        answer: impl Fn(&InputRequest) -> BoxFuture<'static, Result<InputResponse, Refusal>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let capabilities =
            ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots();
        Self { capabilities, answer: Arc::new(answer), roots: Arc::default(), asked: Arc::default() }
    }

    /// Answers nothing but where it works.
    pub(crate) fn with_roots(uris: &[&str]) -> Self {
        let nobody = |question: &InputRequest| panic!("nothing should be asked: {question:?}");
        let roots = Arc::new(Mutex::new(roots(uris)));
        Self { capabilities: ClientCapabilities::default().with_roots(), roots, ..Self::new(nobody) }
    }

    /// Works somewhere else from now on.
    pub(crate) fn set_roots(&self, uris: &[&str]) {
        *self.roots.lock().unwrap() = roots(uris);
    }

    /// Declares something else.
    pub(crate) fn declaring(self, capabilities: ClientCapabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// Returns the input requests so far, except for roots.
    pub(crate) fn asked(&self) -> Vec<InputRequest> {
        self.asked.lock().unwrap().clone()
    }
}

impl InputHandler for RecordingHandler {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities.clone()
    }

    fn answer(
        &self,
        _: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        if matches!(question, InputRequest::Roots) {
            return Box::pin(std::future::ready(Ok(InputResponse::Roots(
                self.roots.lock().unwrap().clone(),
            ))));
        }
        self.asked.lock().unwrap().push(question.clone());
        (self.answer)(&question)
    }
}

fn roots(uris: &[&str]) -> Vec<Root> {
    uris.iter().map(|uri| Root { uri: (*uri).to_owned(), ..Root::default() }).collect()
}
