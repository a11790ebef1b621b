//! Options of forms that there are not, or not so.

use trunkline::prelude::*;

#[derive(Form)]
struct Order {
    #[form(minimum = 1)]
    unknown: i64,
    #[form(min = "one")]
    not_a_number: i64,
    #[form(max)]
    no_number: i64,
    #[form(format = "phone")]
    format: String,
    #[form(name = "format")]
    same: String,
}

#[derive(Form)]
#[form(title = "Order")]
struct Whole {
    a: i64,
}

#[derive(Form)]
enum Size {
    #[form(min = 1)]
    Small,
}

fn main() {}
