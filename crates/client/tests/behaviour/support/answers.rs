use std::sync::{Arc, Mutex};

use serde_json::Value;
use trunkline_client::protocol::Refusal;
use trunkline_client::protocol::model::{ClientCapabilities, InputRequest, InputResponse};
use trunkline_client::{BoxFuture, InputHandler, InputOrigin};

/// Responds by a function, and records the input requests with their origins.
#[derive(Clone)]
pub(crate) struct Answers {
    capabilities: ClientCapabilities,
    answer: Arc<AnswerFn>,
    asked: Arc<Mutex<Vec<(InputOrigin, InputRequest)>>>,
}

type AnswerFn = dyn Fn(&InputRequest) -> Result<InputResponse, Refusal> + Send + Sync;

impl Answers {
    /// Responds to every kind of input request.
    pub(crate) fn new(
        answer: impl Fn(&InputRequest) -> Result<InputResponse, Refusal> + Send + Sync + 'static,
    ) -> Self {
        let capabilities =
            ClientCapabilities::default().with_form().with_url().with_sampling_tools().with_roots();
        Self { capabilities, answer: Arc::new(answer), asked: Arc::default() }
    }

    /// Declares something else.
    pub(crate) fn declaring(self, capabilities: ClientCapabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// Returns the input requests so far.
    pub(crate) fn asked(&self) -> Vec<(InputOrigin, InputRequest)> {
        self.asked.lock().unwrap().clone()
    }
}

impl InputHandler for Answers {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities.clone()
    }

    fn answer(
        &self,
        origin: InputOrigin,
        question: InputRequest,
    ) -> BoxFuture<'_, Result<InputResponse, Refusal>> {
        self.asked.lock().unwrap().push((origin, question.clone()));
        Box::pin(async move {
            // The response takes a while.
            tokio::task::yield_now().await;
            (self.answer)(&question)
        })
    }
}

/// Accepts a form with this content.
pub(crate) fn accept(content: &Value) -> InputResponse {
    InputResponse::accept(Some(content.into()))
}
