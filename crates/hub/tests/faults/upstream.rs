//! A server behind the hub: returns its argument after a while, and reports progress.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use trunkline_server::{Context, HostOptions, Server, ServerTransport as _, Tool, http, stdio};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
    /// How many progress reports the call has.
    steps: u32,
    /// How long it takes, in milliseconds.
    wait: u64,
}

/// Serves until its input ends, or until it is killed: `LABEL`, and an address if it is to be served over HTTP. Whatever
/// comes after that only makes one configuration differ from another.
pub(crate) fn main(options: &[&str]) {
    let label = options[0].to_owned();
    let echo = Tool::new("echo").run(move |cx: Context, Echo { text, steps, wait }: Echo| {
        let label = label.clone();
        async move {
            for step in 1..=steps {
                cx.progress_with(f64::from(step), Some(f64::from(steps)), text.clone());
            }
            if wait > 0 {
                tokio::time::sleep(Duration::from_millis(wait)).await;
            }
            format!("{label}:{text}")
        }
    });
    let host = Server::new("upstream").with(echo).host(HostOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let served = match options.get(1).filter(|option| option.contains(':')) {
        Some(address) => runtime.block_on(http(*address).serve(host)),
        None => runtime.block_on(stdio().serve(host)),
    };
    if let Err(error) = served {
        eprintln!("{error}");
    }
}
