//! `load command`: what a tool call that runs a command costs above running the same command.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::machine::on_server_core;
use crate::statistics::Spread;
use crate::verdict::Verdict;

/// How often the command is run.
#[derive(Args)]
pub(crate) struct CommandArguments {
    /// The example program whose commands are tools; by default the one that the workspace above builds.
    #[arg(long, value_name = "PATH")]
    depot: Option<PathBuf>,
    /// Rounds; in each, both ways are measured in turns.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Runs of each way in one round.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// End with an error when the target is missed.
    #[arg(long)]
    enforce: bool,
}

/// How much more a call may cost than the command alone.
const TARGET: f64 = 1.15;

/// The command that is run, and the tool that runs it.
const COMMANDS: [(&[&str], &str, &str); 2] = [
    (&["--version"], "version", "{}"),
    (&["convert", "--keys=a,b", "in", "out"], "convert", r#"{"input":"in","output":"out","keys":["a","b"]}"#),
];

/// Measures from before the command is started until all that it wrote has been read, in both ways.
pub(crate) fn run(arguments: &CommandArguments) -> Result<()> {
    let depot = arguments.depot.clone().map_or_else(default_path, Ok)?;
    ensure!(
        depot.is_file(),
        "{} is missing: `cargo build --release --package trunkline-commands --example depot` makes it",
        depot.display()
    );
    println!(
        "A tool call over stdio that runs a command, against the same command started directly: {} rounds of {} runs each, in turns.\n",
        arguments.rounds, arguments.runs
    );
    println!(
        "| command | directly, µs | by a call, µs | ratio | least–most | ≤ {TARGET} |\n|---|---|---|---|---|---|"
    );
    let mut missed = Vec::new();
    for (words, tool, call) in COMMANDS {
        let figures = measure(&depot, words, tool, call, arguments)?;
        let spread = |pick: fn(&(f64, f64)) -> f64| {
            Spread::of(figures.iter().map(pick)).context("nothing was measured")
        };
        let (directly, called) = (spread(|(directly, _)| *directly)?, spread(|(_, called)| *called)?);
        let ratio = spread(|(directly, called)| called / directly)?;
        let verdict = Verdict::at_most(ratio.median, TARGET);
        println!(
            "| `depot {}` | {:.0} | {:.0} | {:.2} × | {:.2}–{:.2} | {verdict} |",
            words.join(" "),
            directly.median,
            called.median,
            ratio.median,
            ratio.least,
            ratio.most
        );
        if verdict == Verdict::Missed {
            missed.push(tool);
        }
    }
    ensure!(!arguments.enforce || missed.is_empty(), "a call costs too much: {}", missed.join(", "));
    Ok(())
}

/// Gives the median time of each round in microseconds, directly and by a call.
fn measure(
    depot: &Path,
    words: &[&str],
    tool: &str,
    call: &str,
    arguments: &CommandArguments,
) -> Result<Vec<(f64, f64)>> {
    let mut server = Server::start(depot)?;
    let wanted = directly(depot, words)?;
    let call: Value = serde_json::from_str(call)?;
    ensure!(server.call(tool, &call)? == wanted, "the tool does not run the same command");
    let mut rounds = Vec::new();
    for round in 0..arguments.rounds {
        let direct = || timed(arguments.runs, || directly(depot, words).map(drop));
        let mut by_call = || timed(arguments.runs, || server.call(tool, &call).map(drop));
        // The order is reversed after each round, so that neither way always runs on a machine that the other has warmed.
        let pair = if round % 2 == 0 {
            let first = direct()?;
            (first, by_call()?)
        } else {
            let first = by_call()?;
            (direct()?, first)
        };
        rounds.push(pair);
    }
    Ok(rounds)
}

fn timed(runs: u32, mut once: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut figures = Vec::new();
    for _ in 0..runs {
        let started = Instant::now();
        once()?;
        figures.push(started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(Spread::of(figures).context("nothing was measured")?.median)
}

/// Starts the command as the server does: the same words, nothing to read, both outputs captured, on the server's core.
fn directly(depot: &Path, words: &[&str]) -> Result<String> {
    let mut command = Command::new(depot);
    command.args(words).env_clear().env("PATH", "/usr/bin:/bin").env("NO_COLOR", "1").env("TERM", "dumb");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = on_server_core(|| command.spawn())?;
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{} failed", depot.display());
    Ok(String::from_utf8(output.stdout)?)
}

/// The example as a server, and a client on its pipes.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Server {
    fn start(depot: &Path) -> Result<Self> {
        let mut command = Command::new(depot);
        command.arg("--serve-stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = on_server_core(|| command.spawn())?;
        let input = child.stdin.take().context("its input")?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        let mut server = Self { child, input, output, next: 0 };
        let client = json!({ "name": "load", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        server.request("initialize", &params)?;
        writeln!(server.input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.next += 1;
        let message = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        self.input.write_all(format!("{message}\n").as_bytes())?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)?;
        ensure!(answer.get("id") == Some(&json!(self.next)), "another answer: {line}");
        answer.get("result").cloned().with_context(|| line.clone())
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<String> {
        let result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        let text =
            result.pointer("/content/0/text").and_then(Value::as_str).with_context(|| result.to_string())?;
        ensure!(result.get("isError") == Some(&json!(false)), "the tool failed: {text}");
        Ok(text.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn default_path() -> Result<PathBuf> {
    let program = std::env::current_exe().context("find this program's own folder")?;
    let root = program.ancestors().nth(4).context("this program is not in bench/target/release")?;
    Ok(root.join("target/release/examples/depot"))
}
