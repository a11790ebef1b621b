//! The figures of a run, as a table for people and as JSON for programs.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::drive::Sample;
use crate::machine::Facts;
use crate::matrix::Cell;
use crate::servers::Kind;
use crate::statistics::Spread;
use crate::verdict::Verdict;

/// One server's samples, one for each round.
pub(crate) struct Series {
    pub(crate) kind: Kind,
    pub(crate) samples: Vec<Sample>,
}

/// A whole run.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Facts,
    pub(crate) rounds: usize,
    pub(crate) seconds_per_round: f64,
    pub(crate) cells: Vec<CellResult>,
}

/// What one cell gave.
#[derive(Serialize)]
pub(crate) struct CellResult {
    cell: String,
    scenario: &'static str,
    bytes: usize,
    in_flight: usize,
    /// The CPU per request that ours may cost, as a ratio to the limit.
    target: Option<f64>,
    servers: Vec<ServerResult>,
}

/// What one server gave in one cell.
#[derive(Serialize)]
struct ServerResult {
    server: Kind,
    cpu_microseconds: Spread,
    requests_per_second: Spread,
    /// CPU per request against the limit's, paired within each round.
    cpu_ratio: Spread,
    /// Requests per second against the limit's, paired within each round.
    rate_ratio: Spread,
    generator_busy: Spread,
    samples: Vec<Sample>,
}

/// Above this share of its core the generator may be what limits the rate; CPU per request stays meaningful.
const GENERATOR_SATURATED: f64 = 0.95;

impl CellResult {
    /// Pairs each round of each server with the limit's sample of the same round.
    pub(crate) fn new(cell: Cell, series: Vec<Series>) -> Result<Self> {
        let limit =
            series.iter().find(|series| series.kind == Kind::Bare).context("the limit was not measured")?;
        let limit = limit.samples.clone();
        let servers =
            series.into_iter().map(|series| server_result(series, &limit)).collect::<Result<_>>()?;
        Ok(Self {
            cell: cell.to_string(),
            scenario: cell.scenario.name(),
            bytes: cell.bytes,
            in_flight: cell.in_flight,
            target: cell.target(),
            servers,
        })
    }

    fn server(&self, kind: Kind) -> Option<&ServerResult> {
        self.servers.iter().find(|server| server.server == kind)
    }

    fn verdict(&self) -> Verdict {
        match (self.target, self.server(Kind::Ours)) {
            (None, _) => Verdict::NoTarget,
            (Some(_), None) => Verdict::NotMeasured,
            (Some(target), Some(ours)) => Verdict::at_most(ours.cpu_ratio.median, target),
        }
    }

    fn markdown_row(&self) -> String {
        let microseconds =
            |kind| told(self.server(kind), |server| format!("{:.2}", server.cpu_microseconds.median));
        let ratio = |kind| {
            told(self.server(kind), |server| {
                let Spread { median, least, most } = server.cpu_ratio;
                format!("{median:.2} ({least:.2}–{most:.2})")
            })
        };
        let rate = |kind| told(self.server(kind), |server| format!("{:.2}", server.rate_ratio.median));
        let saturated =
            |kind| self.server(kind).is_some_and(|server| server.generator_busy.median > GENERATOR_SATURATED);
        let limit_rate = told(self.server(Kind::Bare), |server| {
            let mark = if saturated(Kind::Bare) { "\\*" } else { "" };
            format!("{:.0}{mark}", server.requests_per_second.median)
        });
        let target = self.target.map_or_else(String::new, |target| format!("≤ {target}"));
        format!(
            "| {} | {} | {} | {} | {target} | {} | {} | {} | {limit_rate} | {} | {} |",
            self.cell,
            microseconds(Kind::Bare),
            microseconds(Kind::Ours),
            ratio(Kind::Ours),
            self.verdict(),
            microseconds(Kind::Rmcp),
            ratio(Kind::Rmcp),
            rate(Kind::Ours),
            rate(Kind::Rmcp),
        )
    }
}

impl Report {
    pub(crate) fn markdown(&self) -> String {
        let Facts { processor, cores, kernel, load_average, .. } = &self.machine;
        let mut text = format!(
            "{} rounds of {} s; {processor}, {cores} cores, Linux {kernel}, load average {load_average} before the run.\n\
             Ratios are to the limit, paired within each round: median (least–most).\n\
             An asterisk: the generator was over {:.0} % busy, so the rate may be its own.\n\n",
            self.rounds,
            self.seconds_per_round,
            GENERATOR_SATURATED * 100.0
        );
        text.push_str(HEADER);
        for cell in &self.cells {
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{}", cell.markdown_row());
        }
        text
    }

    pub(crate) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)?)
    }

    /// The cells in which our server costs more than its target.
    pub(crate) fn missed_targets(&self) -> Vec<&str> {
        self.cells
            .iter()
            .filter(|cell| cell.verdict() == Verdict::Missed)
            .map(|cell| cell.cell.as_str())
            .collect()
    }
}

const HEADER: &str = "\
| cell | limit µs | ours µs | ours × | target | verdict | rmcp µs | rmcp × | limit req/s | ours rate × | rmcp rate × |
|---|---|---|---|---|---|---|---|---|---|---|
";

fn server_result(series: Series, limit: &[Sample]) -> Result<ServerResult> {
    let samples = series.samples;
    let spread =
        |figure: fn(&Sample) -> f64| Spread::of(samples.iter().map(figure)).context("no round was run");
    let paired = |figure: fn(&Sample) -> f64| {
        let ratios = samples.iter().zip(limit).map(|(sample, limit)| figure(sample) / figure(limit));
        Spread::of(ratios).context("no round was run")
    };
    Ok(ServerResult {
        server: series.kind,
        cpu_microseconds: spread(Sample::cpu_microseconds)?,
        requests_per_second: spread(Sample::requests_per_second)?,
        cpu_ratio: paired(Sample::cpu_microseconds)?,
        rate_ratio: paired(Sample::requests_per_second)?,
        generator_busy: spread(Sample::generator_busy)?,
        samples,
    })
}

fn told(server: Option<&ServerResult>, figure: impl FnOnce(&ServerResult) -> String) -> String {
    server.map_or_else(|| "–".to_owned(), figure)
}

#[cfg(test)]
mod tests {
    use crate::matrix::Scenario;

    use super::*;

    fn sample(cpu_seconds: f64) -> Sample {
        Sample {
            requests: 1000,
            seconds: 1.0,
            server_cpu_seconds: cpu_seconds,
            behind_cpu_seconds: 0.0,
            generator_cpu_seconds: 0.5,
        }
    }

    fn result(ours: &[f64]) -> CellResult {
        let cell = Cell { scenario: Scenario::HttpModern, bytes: 16, in_flight: 32 };
        let series =
            |kind, figures: &[f64]| Series { kind, samples: figures.iter().copied().map(sample).collect() };
        CellResult::new(cell, vec![series(Kind::Bare, &[0.010, 0.020, 0.010]), series(Kind::Ours, ours)])
            .unwrap()
    }

    #[test]
    fn ratios_are_paired_within_a_round_before_the_median_is_taken() {
        let ours = result(&[0.011, 0.024, 0.013]);
        let ratio = ours.server(Kind::Ours).unwrap().cpu_ratio;
        assert!((ratio.median - 1.2).abs() < 1e-9, "{ratio:?}");
        assert_eq!(ours.verdict(), Verdict::Met);
    }

    #[test]
    fn ratio_above_the_target_is_a_miss() {
        assert_eq!(result(&[0.014, 0.026, 0.013]).verdict(), Verdict::Missed);
    }

    #[test]
    fn unmeasured_server_has_empty_columns() {
        assert!(result(&[0.01, 0.02, 0.01]).markdown_row().contains("| – | – |"));
    }
}
