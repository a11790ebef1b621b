//! `load transports`: how long a call takes over each transport, by our client and our echo server.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::machine::resident_bytes;
use crate::servers::{Binaries, HttpServer, Kind, Launch};

/// How much is measured.
#[derive(Args)]
pub(crate) struct TransportArguments {
    /// How many calls are made over each, all clients together.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    calls: u32,
    /// How many clients call at once, each one call after the other; may be repeated.
    #[arg(long, default_values_t = [1, 100, 1_000], value_parser = clap::value_parser!(u32).range(1..=5_000))]
    clients: Vec<u32>,
}

/// A transport, the address for its clients, and a revision to use over it.
struct Subject {
    name: &'static str,
    /// `None` is a server that the client starts.
    url: Option<(&'static str, &'static str)>,
    revision: &'static str,
}

const SUBJECTS: [Subject; 7] = [
    Subject { name: "stdio", url: None, revision: "2025-11-25" },
    Subject { name: "stdio", url: None, revision: "2026-07-28" },
    Subject { name: "Streamable HTTP", url: Some(("http", "/mcp")), revision: "2025-11-25" },
    Subject { name: "Streamable HTTP", url: Some(("http", "/mcp")), revision: "2026-07-28" },
    Subject { name: "HTTP+SSE", url: Some(("http", "/sse")), revision: "2024-11-05" },
    Subject { name: "WebSocket", url: Some(("ws", "/ws")), revision: "2025-11-25" },
    Subject { name: "WebSocket", url: Some(("ws", "/ws")), revision: "2026-07-28" },
];

/// Measures every transport and prints the table.
pub(crate) fn run(binaries: &Binaries, arguments: &TransportArguments) -> Result<()> {
    ensure!(binaries.have_ours(), "our echo example is missing: {}", binaries.ours_path().display());
    println!("A call of 16 B by our client to our echo, {} calls over each transport.\n", arguments.calls);
    println!("| transport | revision | clients | half within | 99 % within | calls/s | server |");
    println!("|---|---|---|---|---|---|---|");
    for subject in &SUBJECTS {
        for clients in &arguments.clients {
            // A server on stdio has one client.
            if subject.url.is_some() || *clients == 1 {
                measure(binaries, subject, *clients, arguments.calls)
                    .with_context(|| format!("{} at {}", subject.name, subject.revision))?;
            }
        }
    }
    Ok(())
}

fn measure(binaries: &Binaries, subject: &Subject, clients: u32, calls: u32) -> Result<()> {
    let server = match subject.url {
        Some(_) => Some(HttpServer::start(binaries, Kind::Ours, &Launch::default())?),
        None => None,
    };
    let mut command = Command::new(binaries.beside("client-ours")?);
    command.args(["--revision", subject.revision, "--clients", &clients.to_string()]);
    command.args(["--calls", &calls.to_string()]);
    match (&server, subject.url) {
        (Some(server), Some((scheme, path))) => {
            command.args(["--http", &format!("{scheme}://{}{path}", server.address())])
        }
        // The client starts its server itself, and would have it on its own core.
        _ => command.args(["--stdio", "taskset", "-c", "0"]).arg(binaries.ours_path()).arg("--stdio"),
    };
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "it ended with {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    let figures: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [half, most, rate] = figures.as_slice() else { anyhow::bail!("it printed `{}`", text.trim()) };
    let memory = match &server {
        Some(server) => format!("{:.1} MiB", resident_bytes(server.id())? as f64 / f64::from(1 << 20)),
        None => String::new(),
    };
    println!(
        "| {} | {} | {clients} | {:.0} µs | {:.0} µs | {rate:.0} | {memory} |",
        subject.name,
        subject.revision,
        half / 1e3,
        most / 1e3,
    );
    server.map_or(Ok(()), HttpServer::end)
}
