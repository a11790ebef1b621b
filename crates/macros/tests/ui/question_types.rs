//! Input parameters with types that are no forms, or that name missing items.

use trunkline::prelude::*;

struct Plain;

#[tool]
async fn no_form(#[ask("Sure?")] _ok: Plain) {}

#[tool]
async fn no_argument(#[ask("Book {dya}?")] _ok: Confirm, day: String) {
    drop(day);
}

fn main() {}
