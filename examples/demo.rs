//! A tool, a prompt and a resource over standard input and output: the example of the README.

use trunkline::prelude::*;

/// Adds two integers.
#[tool]
async fn add(a: i32, b: i32) -> i64 {
    i64::from(a) + i64::from(b)
}

/// Greets a person by name.
#[prompt]
async fn greeting(name: String) -> String {
    format!("Say hello to {name}.")
}

/// What this is.
#[resource("demo://about")]
async fn about() -> &'static str {
    "Three parts of five lines each."
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(server().serve(stdio()).await?)
}

pub(crate) fn server() -> Server {
    Server::new("demo").version(env!("CARGO_PKG_VERSION")).with(add).with(greeting).with(about)
}
