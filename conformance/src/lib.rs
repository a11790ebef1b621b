//! Fixtures for the official conformance suite: a server that has everything which the suite calls.
//!
//! The names of the parts are the suite's. Each part says in its description what the suite wants of it, and nothing
//! in here knows which revision a client speaks.

mod assets;
mod changes;
mod contents;
mod forms;
mod progress;
mod prompts;
mod questions;
mod resources;
mod schemas;

use trunkline::Server;

/// Makes the server that has everything.
pub fn everything() -> Server {
    Server::new("everything")
        .title("Everything")
        .version(env!("CARGO_PKG_VERSION"))
        .description("Has every tool, prompt and resource that the conformance suite asks for.")
        .instructions("Call any tool; each says what it does.")
        .with((contents::tools, progress::tools, schemas::tools, changes::tools))
        .with((questions::tools, forms::tools))
        .with((prompts::prompts, resources::resources, resources::template))
}
