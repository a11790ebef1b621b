//! Fields that a form cannot show, or cannot bound.

use trunkline::prelude::*;

#[derive(Form)]
struct Address {
    street: String,
}

#[derive(Form)]
struct Nested {
    address: Address,
}

#[derive(Form)]
struct Tags {
    tags: Vec<String>,
}

#[derive(Form)]
struct Bounded {
    #[form(min = 1)]
    gift: bool,
}

#[derive(Form)]
struct Formatted {
    #[form(format = "date")]
    day: i64,
}

fn main() {}
