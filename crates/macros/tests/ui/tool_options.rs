//! Options that there are not, or not so.

use trunkline::prelude::*;

#[tool(destructiv)]
async fn unknown() {}

#[tool(name = "a", name = "b")]
async fn twice() {}

#[tool(name)]
async fn no_text() {}

#[tool(title = 7)]
async fn not_text() {}

#[tool(open_world = "no")]
async fn not_a_truth() {}

#[tool(read_only = true)]
async fn flag() {}

#[tool("add")]
async fn bare_text() {}

#[tool(name = "git/commit")]
async fn bad_name() {}

#[tool]
async fn größe() {}

#[prompt(mime = "text/plain")]
async fn not_of_prompts() {}

fn main() {}
