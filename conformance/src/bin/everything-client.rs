//! The client that the official conformance suite runs: `everything-client URL`, with the scenario in the environment.

use clap::Parser;
use trunkline_conformance::client::Scenario;

#[derive(Parser)]
struct Options {
    /// The address of the suite's server.
    url: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> trunkline::Result<()> {
    Scenario::from_environment(Options::parse().url)?.run().await
}
