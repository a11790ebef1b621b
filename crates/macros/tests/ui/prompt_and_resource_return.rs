//! Values that prompts and resources cannot return.

use trunkline::prelude::*;

struct Plain;

#[prompt]
async fn number() -> i64 {
    1
}

#[resource("test://plain")]
async fn plain() -> Plain {
    Plain
}

#[resource("test://perhaps")]
async fn perhaps() -> Result<Option<Plain>, ToolError> {
    Ok(None)
}

fn main() {}
