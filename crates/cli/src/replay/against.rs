use serde_json::{Value, json};
use trunkline_client::{Client, ClientCall, Error, StepOutcome};
use trunkline_protocol::RawJson;

use super::canonical::IgnoredPaths;
use super::comparison::{ComparedCall, ComparisonReport, is_compared};
use super::exchange::{RecordedExchange, RecordedOutcome};
use crate::connect::call_failure;
use crate::exit::CliFailure;

/// Sends the requests of a recording to a server, one after the other, and compares the answers.
///
/// # Errors
/// The connection fails.
pub(crate) async fn compare_with_server(
    client: &Client,
    exchanges: &[RecordedExchange],
    ignored: &IgnoredPaths,
) -> Result<ComparisonReport, CliFailure> {
    let mut report = ComparisonReport::default();
    for exchange in exchanges.iter().filter(|exchange| is_compared(exchange)) {
        report.push(match unsuitable(exchange) {
            Some(why) => ComparedCall::skipped(exchange, why),
            None => match repeat(client, exchange).await? {
                Some(outcome) => ComparedCall::new(exchange, &outcome, ignored),
                None => ComparedCall::skipped(exchange, "the server requires input now"),
            },
        });
    }
    Ok(report)
}

/// Explains why a request is not sent again.
fn unsuitable(exchange: &RecordedExchange) -> Option<&'static str> {
    if exchange.params.get("cursor").is_some() {
        return Some("a cursor is valid only for the server that made it");
    }
    if exchange.params.get("inputResponses").is_some() {
        return Some("it continues an earlier request");
    }
    match &exchange.outcome {
        RecordedOutcome::Missing(why) => Some(why),
        RecordedOutcome::Result(result) => {
            let kind = result.members().ok()?.text("resultType")?;
            (kind == "input_required").then_some("the server required input")
        }
        RecordedOutcome::Error(_) => None,
    }
}

/// Sends a request; `None` if the server requires input.
async fn repeat(client: &Client, exchange: &RecordedExchange) -> Result<Option<RecordedOutcome>, CliFailure> {
    let call = ClientCall::other(exchange.method.clone(), RawJson::from(exchange.params.clone()));
    match client.step(call).await {
        Ok(StepOutcome::Done(result)) => Ok(Some(RecordedOutcome::Result(result.into_raw()))),
        Err(Error::ErrorResponse(error)) => {
            let mut members = json!({ "code": error.code, "message": error.message });
            if let (Some(data), Value::Object(members)) = (&error.data, &mut members) {
                let data = serde_json::from_str(data.as_str()).unwrap_or_default();
                members.insert("data".to_owned(), data);
            }
            Ok(Some(RecordedOutcome::Error(members)))
        }
        Err(error) => Err(call_failure(error)),
        Ok(_) => Ok(None),
    }
}
