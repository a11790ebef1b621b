//! A tool with typed arguments and a typed result, over standard input and output.

use trunkline::prelude::*;

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Total {
    /// Both numbers together.
    sum: i64,
}

/// Adds two integers.
#[tool(read_only, idempotent)]
async fn add(
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
) -> Result<Total, ToolError> {
    let sum = a.checked_add(b).ok_or_else(|| ToolError::new("the sum is too large"))?;
    Ok(Total { sum })
}

/// Puts the server together.
pub(crate) fn server() -> Server {
    Server::new("add").with(add)
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    Ok(server().serve(stdio()).await?)
}
