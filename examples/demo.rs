//! A tool and a resource over standard input and output: the example of the README.

use trunkline::prelude::*;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair {
    a: i64,
    b: i64,
}

#[tokio::main]
async fn main() -> trunkline::Result<()> {
    let add = Tool::new("add").description("Adds two integers.").run(async |Pair { a, b }| a + b);
    let about = Resource::new("demo://about", "about").text("A server in fifteen lines.");
    Ok(Server::new("demo").with(add).with(about).serve(stdio()).await?)
}
