//! `load run`: the servers take turns on the same core, round after round.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::{ArgGroup, Args};

use crate::drive::{Plan, Sample, Window, drive_http, drive_stdio};
use crate::machine;
use crate::matrix::{Cell, Filter};
use crate::report::{CellResult, Report, Series};
use crate::servers::{Binaries, HttpServer, Kind, Launch, StdioServer};
use crate::wire::filler;

/// What to measure and for how long.
#[derive(Args)]
#[command(group(ArgGroup::new("length").required(true)))]
pub(crate) struct RunArguments {
    /// Three rounds of half a second for each server and cell.
    #[arg(long, group = "length")]
    quick: bool,
    /// Seven rounds of two seconds for each server and cell.
    #[arg(long, group = "length")]
    full: bool,
    /// Only these cells: a scenario, a size, a number in flight, or several of them as in `http-modern,16,32`.
    #[arg(long, value_name = "FILTER")]
    only: Vec<String>,
    /// Write every round of every cell to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// End with an error when our server misses a target.
    #[arg(long)]
    enforce: bool,
}

/// Measures every chosen cell and prints the table.
pub(crate) fn run(binaries: &Binaries, arguments: &RunArguments) -> Result<()> {
    let (rounds, plan) = if arguments.full {
        (7, Plan { warm_up: Duration::from_millis(300), measured: Duration::from_secs(2) })
    } else {
        (3, Plan { warm_up: Duration::from_millis(150), measured: Duration::from_millis(500) })
    };
    let filters = arguments.only.iter().map(|text| Filter::parse(text)).collect::<Result<Vec<_>>>()?;
    let mut cells = Cell::all();
    cells.retain(|cell| filters.is_empty() || filters.iter().any(|filter| filter.admits(cell)));
    ensure!(!cells.is_empty(), "no cell is left to measure");

    let machine = machine::facts();
    let mut results = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        eprintln!("{}/{}: {cell}", index + 1, cells.len());
        let series = measure_cell(binaries, *cell, rounds, plan).with_context(|| cell.to_string())?;
        results.push(CellResult::new(*cell, series)?);
    }
    let report = Report { machine, rounds, seconds_per_round: plan.measured.as_secs_f64(), cells: results };
    println!("{}", report.markdown());
    if let Some(path) = &arguments.json {
        std::fs::write(path, report.json()?).with_context(|| format!("write {}", path.display()))?;
    }
    let missed = report.missed_targets();
    ensure!(!arguments.enforce || missed.is_empty(), "targets missed: {}", missed.join("; "));
    Ok(())
}

/// Runs the rounds of one cell. The order turns round each time, so that a drift of the machine favours none.
fn measure_cell(binaries: &Binaries, cell: Cell, rounds: usize, plan: Plan) -> Result<Vec<Series>> {
    let launch = Launch { handlers_yield: cell.scenario.handlers_yield(), ..Launch::default() };
    let text = filler(cell.bytes);
    let mut running = Vec::new();
    for kind in binaries.kinds() {
        let server = Running::start(binaries, kind, cell, &launch)?;
        running.push((server, Series { kind, samples: Vec::with_capacity(rounds) }));
    }
    for _ in 0..rounds {
        for (server, series) in &mut running {
            let sample = server.measure(cell, &text, plan).with_context(|| series.kind.name())?;
            series.samples.push(sample);
        }
        running.reverse();
    }
    let mut series: Vec<Series> = running.into_iter().map(|(_, series)| series).collect();
    series.sort_by_key(|series| binaries.kinds().iter().position(|kind| *kind == series.kind));
    Ok(series)
}

/// A server that waits for its turn; it is idle while another one is measured.
enum Running {
    Http(HttpServer),
    Stdio(Box<StdioServer>),
}

impl Running {
    fn start(binaries: &Binaries, kind: Kind, cell: Cell, launch: &Launch) -> Result<Self> {
        if cell.scenario.is_http() {
            return Ok(Self::Http(HttpServer::start(binaries, kind, launch)?));
        }
        let mut server = StdioServer::start(binaries, kind, launch)?;
        server.prepare(cell.scenario.era()).with_context(|| kind.name())?;
        Ok(Self::Stdio(Box::new(server)))
    }

    fn measure(&mut self, cell: Cell, text: &str, plan: Plan) -> Result<Sample> {
        let era = cell.scenario.era();
        match self {
            Self::Http(server) => {
                let window = Window::new(server.id(), plan);
                drive_http(server.address(), era, text, cell.in_flight, window)
            }
            Self::Stdio(server) => {
                let window = Window::new(server.id(), plan);
                drive_stdio(server, era, text, cell.in_flight, window)
            }
        }
    }
}
