//! The client that the official conformance suite runs: `everything-client URL`, with the scenario in the environment.
//! With `--bridge`, the command `trunkline` stands between it and the suite's server.

use std::path::PathBuf;

use clap::Parser;
use trunkline_conformance::client::Scenario;

#[derive(Parser)]
struct Options {
    /// The command `trunkline`, which is started as a bridge in front of the suite's server.
    #[arg(long)]
    bridge: Option<PathBuf>,
    /// The address of the suite's server.
    url: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> trunkline::Result<()> {
    let options = Options::parse();
    let scenario = Scenario::from_environment(options.url)?;
    match options.bridge {
        Some(bridge) => scenario.run_through(&bridge).await,
        None => scenario.run().await,
    }
}
