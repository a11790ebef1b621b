//! The smallest server: one tool, over standard input and output.

use trunkline::prelude::*;

/// Adds two integers.
#[tool]
async fn add(a: i32, b: i32) -> i64 {
    i64::from(a) + i64::from(b)
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(Server::new("demo").with(add).serve(stdio()).await?)
}
