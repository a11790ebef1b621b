//! Values that a tool cannot return.

use trunkline::prelude::*;

struct Plain;

#[derive(serde::Serialize)]
struct NoSchema;

#[tool]
async fn plain() -> Plain {
    Plain
}

#[tool]
async fn no_schema() -> NoSchema {
    NoSchema
}

#[tool]
async fn in_result() -> Result<Plain, ToolError> {
    Ok(Plain)
}

#[tool]
async fn no_error() -> Result<i64, String> {
    Ok(1)
}

#[tool]
async fn no_error_of_content() -> Result<Content, String> {
    Ok(Content::text(""))
}

fn main() {}
