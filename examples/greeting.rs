//! A prompt that greets by name, over standard input and output.

use trunkline::prelude::*;

/// Personalized greeting
#[prompt]
async fn greeting(
    /// The name to greet.
    name: String,
) -> GetPromptResult {
    GetPromptResult {
        description: Some("Personalized greeting".to_owned()),
        ..GetPromptResult::new(vec![PromptMessage::assistant(format!("Hello {name}"))])
    }
}

/// Puts the server together.
pub(crate) fn server() -> Server {
    Server::new("greeting").with(greeting)
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(server().serve(stdio()).await?)
}
