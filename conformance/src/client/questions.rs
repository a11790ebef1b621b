//! The scenario that looks at rounds of questions.

use serde_json::json;
use trunkline::Result;
use trunkline_client::{Client, ClientCall, StepOutcome};

use super::answers::answer;

/// Calls the tools of the scenario so that the rounds of each are interleaved with a call that has nothing to do with them.
pub(super) async fn between_rounds(client: &Client) -> Result<()> {
    client.tools().await?;
    for tool in ["test_mrtr_echo_state", "test_mrtr_no_state"] {
        let mut outcome = client.step(ClientCall::tool(tool, json!({}))).await?;
        while let StepOutcome::InputRequired(round) = outcome {
            client.call("test_mrtr_unrelated", json!({})).await?;
            let answers = round.requests.iter().map(|(key, question)| (key.clone(), answer(question)));
            let answers = answers.collect();
            outcome = round.respond(answers).await?;
        }
    }
    client.call("test_mrtr_no_result_type", json!({})).await?;
    Ok(())
}
