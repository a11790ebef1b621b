//! Uses a key that the caller's environment has, and lets it go nowhere else.
//!
//! `API_KEY=… cargo run --example api_key` serves it over standard input and output.

use trunkline::prelude::*;
use trunkline::{EnvPolicy, HostOptions, Secret};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Question {
    /// What to ask the service.
    prompt: String,
}

async fn ask_service(cx: Context, Question { prompt }: Question) -> Result<String, ToolError> {
    let key = cx.env("API_KEY").ok_or_else(|| ToolError::new("API_KEY not set"))?;
    let request = request(&key, &prompt);
    Ok(format!("the service would be sent {} bytes for {prompt:?}", request.len()))
}

/// Makes the request to the service. It is not sent: what this shows is the one place where the key leaves its type.
fn request(key: &Secret, prompt: &str) -> String {
    format!(
        "POST /v1/answers HTTP/1.1\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{prompt}",
        key.expose(),
        prompt.len()
    )
}

/// Makes the server.
pub(crate) fn server() -> Server {
    let description = "Asks a service that wants a key.";
    Server::new("service").with(Tool::new("ask_service").description(description).run(ask_service))
}

/// Names the variables that it may see.
pub(crate) fn options() -> HostOptions {
    let names = vec!["API_KEY".to_owned()];
    let env = EnvPolicy { from_process: names.clone(), from_headers: names };
    HostOptions { env, ..HostOptions::default() }
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(stdio().serve(server().host(options())?).await?)
}
