use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use trunkline_client::ErrorResponse;
use trunkline_protocol::codec::{ListPageResult, RelayedResult, ServerResult};
use trunkline_protocol::mirror::MirroredParams;
use trunkline_protocol::model::{
    CacheHint, Implementation, ListCapability, ResourcesCapability, ServerCapabilities,
};
use trunkline_protocol::{Method, RawJson, Refusal, Revision, emit};
use trunkline_server::{
    BoxFuture, CallerIdentity, ChangePublisher, ChangeSubscription, Handler, HandlerOutcome, IncomingCall,
    SubscriptionFilter,
};

use super::canonical::canonical_params;
use super::exchange::{RecordedExchange, RecordedOutcome};

/// The most characters of a request that an error names.
const MAX_NAMED: usize = 200;

/// Answers requests as they were answered in a recording.
///
/// Equal requests get their answers in the recorded order, and then the last one again.
#[derive(Clone)]
pub(crate) struct MockServer {
    answers: Arc<Mutex<HashMap<String, RecordedAnswers>>>,
    capabilities: ServerCapabilities,
    identity: Implementation,
    changes: ChangePublisher,
}

/// The answers to equal requests.
#[derive(Debug, Default)]
struct RecordedAnswers {
    outcomes: Vec<(RecordedOutcome, Revision)>,
    next: usize,
}

impl MockServer {
    pub(crate) fn new(exchanges: &[RecordedExchange]) -> Self {
        let mut answers: HashMap<String, RecordedAnswers> = HashMap::new();
        for exchange in exchanges {
            let revision = exchange.revision.as_deref().and_then(Revision::parse);
            let outcomes = &mut answers.entry(key(&exchange.method, &exchange.params)).or_default().outcomes;
            outcomes.push((exchange.outcome.clone(), revision.unwrap_or(Revision::NEWEST)));
        }
        let has = |prefix: &str| exchanges.iter().any(|exchange| exchange.method.starts_with(prefix));
        let list = ListCapability::default();
        let capabilities = ServerCapabilities {
            tools: has("tools/").then_some(list),
            prompts: has("prompts/").then_some(list),
            resources: has("resources/").then(ResourcesCapability::default),
            completions: has("completion/"),
            ..ServerCapabilities::default()
        };
        Self {
            answers: Arc::new(Mutex::new(answers)),
            capabilities,
            identity: recorded_identity(exchanges),
            changes: ChangePublisher::default(),
        }
    }

    fn answer(&self, method: Method, params: &Value) -> Result<HandlerOutcome, Refusal> {
        let key = key(method.as_str(), params);
        let answer = {
            let mut answers = self.answers.lock();
            answers.get_mut(&key).and_then(RecordedAnswers::take)
        };
        let named: String = key.chars().take(MAX_NAMED).collect();
        let unknown = |why: &str| Refusal::INVALID_PARAMS.with_message(format!("{why}: {named}"));
        match answer.ok_or_else(|| unknown("this request was not recorded"))? {
            (RecordedOutcome::Result(result), revision) => result_of(method, revision, result)
                .map(HandlerOutcome::Done)
                .ok_or_else(|| unknown("the recorded result is malformed")),
            (RecordedOutcome::Error(error), _) => {
                Err(ErrorResponse::from_raw(&RawJson::from(error)).into_refusal())
            }
            (RecordedOutcome::Missing(why), _) => Err(unknown(why)),
        }
    }
}

impl RecordedAnswers {
    fn take(&mut self) -> Option<(RecordedOutcome, Revision)> {
        let outcome = self.outcomes.get(self.next).or(self.outcomes.last()).cloned();
        self.next += 1;
        outcome
    }
}

impl Handler for MockServer {
    fn identity(&self) -> Implementation {
        self.identity.clone()
    }

    fn capabilities(&self) -> ServerCapabilities {
        self.capabilities.clone()
    }

    fn instructions(&self, _: CallerIdentity<'_>) -> Option<String> {
        None
    }

    fn mirrored_arguments(&self, _: &str, _: CallerIdentity<'_>) -> Option<Arc<MirroredParams>> {
        None
    }

    fn call(&self, call: IncomingCall) -> BoxFuture<'static, Result<HandlerOutcome, Refusal>> {
        let params = emit::whole_params(call.params());
        let params = serde_json::from_str(params.as_str()).unwrap_or_default();
        let answer = self.answer(call.method, &canonical_params(Some(&params)));
        Box::pin(std::future::ready(answer))
    }

    fn subscribe(&self, filter: SubscriptionFilter) -> ChangeSubscription {
        self.changes.subscribe(filter)
    }
}

fn key(method: &str, params: &Value) -> String {
    format!("{method} {params}")
}

fn recorded_identity(exchanges: &[RecordedExchange]) -> Implementation {
    let described = exchanges.iter().find_map(|exchange| match &exchange.outcome {
        RecordedOutcome::Result(result) => result.members().ok()?.take("serverInfo"),
        _ => None,
    });
    let known = described.and_then(|info| Implementation::read(&info).ok());
    known.unwrap_or_else(|| Implementation::new("trunkline-replay", env!("CARGO_PKG_VERSION")))
}

/// Makes a result for a client of any revision.
fn result_of(method: Method, revision: Revision, result: RawJson) -> Option<ServerResult> {
    let key = match method {
        Method::ToolsList => "tools",
        Method::PromptsList => "prompts",
        Method::ResourcesList => "resources",
        Method::TemplatesList => "resourceTemplates",
        _ => return RelayedResult::new(method, revision, result).ok().map(ServerResult::Relayed),
    };
    let members = result.members().ok()?;
    let next_cursor = members.text("nextCursor").map(|cursor| cursor.to_string());
    let items = members.get(key)?.elements().ok()?;
    Some(ServerResult::List(ListPageResult { key, items, next_cursor, cache: CacheHint::default() }))
}
