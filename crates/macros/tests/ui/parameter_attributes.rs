//! Attributes of parameters that there are not, or not so.

use trunkline::prelude::*;

#[tool]
async fn unknown(#[defalt(3)] a: i64) {}

#[tool]
async fn serde_is_not_ours(#[serde(rename = "b")] a: i64) {}

#[tool]
async fn no_header(#[header] a: i64) {}

#[tool]
async fn no_name(#[rename(7)] a: i64) {}

#[tool]
async fn of_prompts(#[complete(names)] a: String) {}

#[prompt]
async fn of_tools(#[header("A")] a: String) {}

#[prompt]
async fn no_function(#[complete("names")] a: String) {}

#[tool]
async fn on_context(#[default] context: Context) {}

#[tool]
async fn brackets(#[default = 3] a: i64) {}

fn main() {}
