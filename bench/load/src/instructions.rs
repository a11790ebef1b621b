//! `load instructions`: user-space instructions per request, which repeat where times do not.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::matrix::{Filter, Scenario};
use crate::servers::{Binaries, HttpServer, Kind, Launch, StdioServer};
use crate::wire::{Call, Client, Era, FIRST_ID, Target, filler};

/// What to count and what to hold it against.
#[derive(Args)]
pub(crate) struct InstructionArguments {
    /// Only these scenarios, such as `http-modern`.
    #[arg(long, value_name = "SCENARIO")]
    only: Vec<String>,
    /// Write the counts to this file, to be checked against later.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// End with an error when ours needs more instructions than this file allows.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Count ours alone, without the limit and rmcp to compare with.
    #[arg(long)]
    pub(crate) ours_only: bool,
    /// How much more is let through, in per cent.
    #[arg(long, default_value_t = 2.0)]
    tolerance: f64,
}

/// The shorter run; it brings buffers and caches to their working size.
const SHORT: u32 = 300;
/// What the longer run does beyond it, and what the difference is divided by.
const MEASURED: u32 = 1000;
/// The size of the message.
const BYTES: usize = 16;

/// Instructions per request, by scenario and server.
type Counts = BTreeMap<String, BTreeMap<String, f64>>;

/// Counts for every server and prints the table.
pub(crate) fn run(binaries: &Binaries, arguments: &InstructionArguments) -> Result<()> {
    let filters = arguments.only.iter().map(|text| Filter::parse(text)).collect::<Result<Vec<_>>>()?;
    println!(
        "User-space instructions per request: callgrind, {BYTES} B, one at a time, {} against {SHORT} requests.\n",
        SHORT + MEASURED
    );
    println!("| scenario | limit | ours | ours × | rmcp | rmcp × |\n|---|---|---|---|---|---|");
    let mut counts = Counts::new();
    for scenario in Scenario::ALL {
        if !filters.is_empty() && !filters.iter().any(|filter| filter.admits_scenario(scenario)) {
            continue;
        }
        let mut of_scenario = BTreeMap::new();
        for kind in binaries.kinds() {
            if arguments.ours_only && kind != Kind::Ours {
                continue;
            }
            eprintln!("{}: {}", scenario.name(), kind.name());
            let count = per_request(binaries, kind, scenario)
                .with_context(|| format!("{} on {}", scenario.name(), kind.name()))?;
            of_scenario.insert(kind.name().to_owned(), count);
        }
        println!("{}", row(scenario, &of_scenario));
        counts.insert(scenario.name().to_owned(), of_scenario);
    }
    if let Some(path) = &arguments.save {
        std::fs::write(path, serde_json::to_string_pretty(&counts)? + "\n")
            .with_context(|| format!("write {}", path.display()))?;
    }
    arguments.check.as_deref().map_or(Ok(()), |path| check(&counts, path, arguments.tolerance))
}

/// Runs the server twice; what start and end cost is in both runs and drops out.
fn per_request(binaries: &Binaries, kind: Kind, scenario: Scenario) -> Result<f64> {
    let short = total(binaries, kind, scenario, SHORT)?;
    let long = total(binaries, kind, scenario, SHORT + MEASURED)?;
    Ok((long as f64 - short as f64) / f64::from(MEASURED))
}

fn total(binaries: &Binaries, kind: Kind, scenario: Scenario, requests: u32) -> Result<u64> {
    let profile = Profile::new();
    let launch =
        Launch { handlers_yield: scenario.handlers_yield(), wrapper: profile.wrapper(), ..Launch::default() };
    let (era, text) = (scenario.era(), filler(BYTES));
    if scenario.is_http() {
        let server = HttpServer::start(binaries, kind, &launch)?;
        let mut client = Client::connect(server.address())?;
        let session = if era == Era::Legacy { Some(client.open_session()?) } else { None };
        let target = Target { place: server.address().into(), era, session: session.as_deref() };
        let mut call = Call::http(&target, &text)?;
        for number in 0..requests {
            client.call(&mut call, FIRST_ID + number, &text)?;
        }
        drop(client);
        server.end()?;
    } else {
        let mut server = StdioServer::start(binaries, kind, &launch)?;
        server.prepare(era)?;
        let mut call = Call::line(era, &text)?;
        for number in 0..requests {
            server.call(&mut call, FIRST_ID + number, &text)?;
        }
        server.end()?;
    }
    profile.total()
}

/// The file that callgrind writes; it is removed with its owner.
struct Profile(PathBuf);

impl Profile {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("load-callgrind.{}", std::process::id())))
    }

    fn wrapper(&self) -> Vec<OsString> {
        let mut file = OsString::from("--callgrind-out-file=");
        file.push(&self.0);
        vec!["valgrind".into(), "--quiet".into(), "--tool=callgrind".into(), file]
    }

    fn total(&self) -> Result<u64> {
        let text =
            std::fs::read_to_string(&self.0).context("callgrind wrote no profile; is valgrind installed?")?;
        total_of_profile(&text).context("the profile has no totals")
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // A run that failed early has left none.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn total_of_profile(profile: &str) -> Option<u64> {
    let line = profile.lines().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn row(scenario: Scenario, counts: &BTreeMap<String, f64>) -> String {
    let count = |kind: Kind| counts.get(kind.name()).copied();
    let told = |figure: Option<f64>| figure.map_or_else(|| "–".to_owned(), |figure| format!("{figure:.0}"));
    let ratio = |kind| match (count(kind), count(Kind::Bare)) {
        (Some(figure), Some(limit)) => format!("{:.2}", figure / limit),
        _ => "–".to_owned(),
    };
    format!(
        "| {} | {} | {} | {} | {} | {} |",
        scenario.name(),
        told(count(Kind::Bare)),
        told(count(Kind::Ours)),
        ratio(Kind::Ours),
        told(count(Kind::Rmcp)),
        ratio(Kind::Rmcp)
    )
}

fn check(counts: &Counts, path: &Path, tolerance: f64) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let known: Counts = serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))?;
    let worse = regressions(counts, &known, tolerance);
    ensure!(worse.is_empty(), "more instructions than before: {}", worse.join("; "));
    Ok(())
}

/// Names the scenarios in which ours needs more than it did.
fn regressions(counts: &Counts, known: &Counts, tolerance: f64) -> Vec<String> {
    let ours = |counts: &Counts, scenario: &str| counts.get(scenario)?.get(Kind::Ours.name()).copied();
    let worse = |scenario: &String| {
        let (now, before) = (ours(counts, scenario)?, ours(known, scenario)?);
        let allowed = before * (1.0 + tolerance / 100.0);
        (now > allowed).then(|| format!("{scenario}: {before:.0} before, {now:.0} now"))
    };
    counts.keys().filter_map(worse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(ours: f64) -> Counts {
        let servers = [("bare", 20_000.0), ("ours", ours)].map(|(name, count)| (name.to_owned(), count));
        BTreeMap::from([("http-modern".to_owned(), BTreeMap::from(servers))])
    }

    #[test]
    fn total_is_read_from_the_end_of_a_profile() {
        assert_eq!(total_of_profile("events: Ir\n...\nfn=(1)\ntotals: 126557\n"), Some(126_557));
        assert_eq!(total_of_profile("events: Ir\n"), None);
    }

    #[test]
    fn more_instructions_than_tolerated_are_a_regression() {
        for (now, expected) in [(24_000.0, 0), (24_400.0, 0), (24_600.0, 1), (20_000.0, 0)] {
            assert_eq!(regressions(&counts(now), &counts(24_000.0), 2.0).len(), expected, "{now}");
        }
    }
}
