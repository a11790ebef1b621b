//! Invalid input parameters.

use trunkline::prelude::*;

struct Plain;

#[tool]
async fn no_question(#[ask] ok: Confirm) {}

#[tool]
async fn unknown(#[ask("Sure?", kye = "ok")] ok: Confirm) {}

#[tool]
async fn both(#[ask("Sure?")] #[default] ok: Confirm) {}

#[tool]
async fn same_key(#[ask("Sure?")] ok: Confirm, #[ask("Really?", key = "ok")] really: Confirm) {}

#[tool]
async fn too_many(
    #[ask("1?")] a: Confirm,
    #[ask("2?")] b: Confirm,
    #[ask("3?")] c: Confirm,
    #[ask("4?")] d: Confirm,
    #[ask("5?")] e: Confirm,
) {
}

fn main() {}
