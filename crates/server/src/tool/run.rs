use std::marker::PhantomData;
use std::sync::Arc;

use trunkline_protocol::codec::ServerResult;
use trunkline_protocol::model::CallToolResult;
use trunkline_protocol::{RawJson, Refusal};

use super::arguments::{ArgumentCheck, with_integers};
use super::result::IntoToolResult;
use crate::call::{BoxFuture, Context, HandlerOutcome};
use crate::function::HandlerFn;
use crate::schema::SchemaValidator;

pub(super) type ToolFuture = BoxFuture<'static, Result<HandlerOutcome, Refusal>>;

/// A tool's handler, with its types erased.
///
/// The future that it returns is the only one that a call boxes.
pub(super) trait RunTool: Send + Sync {
    fn run(&self, request: ToolRequest<'_>) -> ToolFuture;
}

/// A call with arguments that have passed the checks before the handler.
pub(super) struct ToolRequest<'t> {
    pub(super) context: Context,
    pub(super) check: &'t ArgumentCheck,
    pub(super) output: Option<Arc<SchemaValidator>>,
}

impl ToolRequest<'_> {
    fn arguments(&self) -> &RawJson {
        self.context.shared().arguments()
    }
}

/// A handler with typed arguments.
pub(super) struct TypedTool<F, Shape> {
    function: F,
    shape: PhantomData<fn() -> Shape>,
}

impl<F, Shape> TypedTool<F, Shape> {
    pub(super) fn new(function: F) -> Self {
        Self { function, shape: PhantomData }
    }
}

impl<F, Shape> RunTool for TypedTool<F, Shape>
where
    F: HandlerFn<Shape>,
    F::Output: IntoToolResult,
{
    fn run(&self, request: ToolRequest<'_>) -> ToolFuture {
        let arguments = match request.arguments().decode() {
            Ok(arguments) => arguments,
            Err(error) => match with_integers(request.arguments()).map(|whole| whole.decode()) {
                Some(Ok(arguments)) => arguments,
                _ => return tool_error(request.check.explain(request.arguments(), &error)),
            },
        };
        let future = self.function.invoke(request.context, arguments);
        let output = request.output;
        Box::pin(async move { finish(future.await, output.as_deref()) })
    }
}

/// A handler that takes its arguments unchanged.
pub(super) struct RawTool<F>(pub(super) F);

impl<F, Fut> RunTool for RawTool<F>
where
    F: Fn(Context, RawJson) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoToolResult> + Send + 'static,
{
    fn run(&self, request: ToolRequest<'_>) -> ToolFuture {
        let arguments = request.arguments().clone();
        let future = (self.0)(request.context, arguments);
        let output = request.output;
        Box::pin(async move { finish(future.await, output.as_deref()) })
    }
}

/// Answers with an error result that the model may correct itself by.
pub(super) fn tool_error(text: String) -> ToolFuture {
    Box::pin(std::future::ready(Ok(HandlerOutcome::Done(ServerResult::Tool(CallToolResult::error(text))))))
}

fn finish(
    returned: impl IntoToolResult,
    output: Option<&SchemaValidator>,
) -> Result<HandlerOutcome, Refusal> {
    let result = returned.into_tool_result()?;
    if let Some(check) = output.filter(|_| !result.is_error) {
        check_output(check, &result)?;
    }
    Ok(HandlerOutcome::Done(ServerResult::Tool(result)))
}

fn check_output(check: &SchemaValidator, result: &CallToolResult) -> Result<(), Refusal> {
    let complaint = match &result.structured {
        None => Some("there is no structured content".to_owned()),
        Some(raw) => match raw.get() {
            Ok(value) => check.violation(&value),
            Err(error) => Some(error.to_string()),
        },
    };
    complaint.map_or(Ok(()), |complaint| {
        Err(Refusal::INTERNAL
            .with_message(format!("the tool's result does not fit its output schema: {complaint}")))
    })
}
