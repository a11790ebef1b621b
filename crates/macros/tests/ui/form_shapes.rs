//! Types that are no forms.

use trunkline::prelude::*;

#[derive(Form)]
struct Pair(i64, i64);

#[derive(Form)]
struct Unit;

#[derive(Form)]
struct Empty {}

#[derive(Form)]
struct Generic<T> {
    value: T,
}

#[derive(Form)]
union Either {
    a: u32,
    b: f32,
}

#[derive(Form)]
enum Data {
    None,
    Some(i64),
}

#[derive(Form)]
enum Nothing {}

#[derive(Form)]
enum Same {
    #[form(name = "B")]
    A,
    B,
}

fn main() {}
