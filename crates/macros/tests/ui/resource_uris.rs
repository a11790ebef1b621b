//! URIs that do not fit their functions.

use trunkline::prelude::*;

#[resource]
async fn nothing() {}

#[resource(name = "about")]
async fn no_uri() -> &'static str {
    ""
}

#[resource("users://{id}/profile")]
async fn no_parameter() -> &'static str {
    ""
}

#[resource("users://{id}/profile")]
async fn other_name(user: u64) -> &'static str {
    ""
}

#[resource("users://all")]
async fn no_variable(id: u64) -> &'static str {
    ""
}

#[resource("about")]
async fn no_scheme() -> &'static str {
    ""
}

#[resource("users://{id")]
async fn open(id: u64) -> &'static str {
    ""
}

#[resource("users://{id*}")]
async fn modifier(id: u64) -> &'static str {
    ""
}

#[resource("test://a", mine = "text/plain")]
async fn unknown() -> &'static str {
    ""
}

fn main() {}
