//! What is measured: transports, eras, sizes, requests in flight; and the target of each combination.

use std::fmt;

use anyhow::{Context as _, Result, bail};

use crate::wire::Era;

/// A transport, an era and a way of handling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    HttpLegacy,
    HttpModern,
    StdioLegacy,
    StdioModern,
    /// Modern, and every handler yields once before it answers.
    StdioYield,
}

impl Scenario {
    pub(crate) const ALL: [Self; 5] =
        [Self::HttpLegacy, Self::HttpModern, Self::StdioLegacy, Self::StdioModern, Self::StdioYield];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::HttpLegacy => "http-legacy",
            Self::HttpModern => "http-modern",
            Self::StdioLegacy => "stdio-legacy",
            Self::StdioModern => "stdio-modern",
            Self::StdioYield => "stdio-yield",
        }
    }

    pub(crate) const fn era(self) -> Era {
        match self {
            Self::HttpLegacy | Self::StdioLegacy => Era::Legacy,
            Self::HttpModern | Self::StdioModern | Self::StdioYield => Era::Modern,
        }
    }

    pub(crate) const fn is_http(self) -> bool {
        matches!(self, Self::HttpLegacy | Self::HttpModern)
    }

    pub(crate) const fn handlers_yield(self) -> bool {
        matches!(self, Self::StdioYield)
    }
}

const SMALL: usize = 16;
const LARGE: usize = 64 * 1024;

/// One combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) scenario: Scenario,
    pub(crate) bytes: usize,
    pub(crate) in_flight: usize,
}

impl Cell {
    /// Every combination that is measured.
    pub(crate) fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for scenario in Scenario::ALL {
            for bytes in [SMALL, LARGE] {
                for in_flight in [1, 32, 256] {
                    cells.push(Self { scenario, bytes, in_flight });
                }
            }
        }
        // What yielding costs shows where requests are many and small.
        cells.retain(|cell| {
            cell.scenario != Scenario::StdioYield || cell.bytes == SMALL && cell.in_flight > 1
        });
        cells
    }

    /// The CPU per request that our server may cost, as a ratio to the limit.
    pub(crate) const fn target(&self) -> Option<f64> {
        match (self.scenario, self.bytes, self.in_flight) {
            (Scenario::HttpLegacy | Scenario::HttpModern, LARGE, _) => Some(1.1),
            (Scenario::HttpLegacy | Scenario::HttpModern, SMALL, 1) => Some(1.2),
            (Scenario::HttpLegacy | Scenario::HttpModern, SMALL, 32) => Some(1.25),
            (Scenario::StdioLegacy | Scenario::StdioModern, SMALL, 32) => Some(2.0),
            (Scenario::StdioYield, SMALL, 32) => Some(3.0),
            _ => None,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = if self.bytes >= 1024 {
            format!("{} KiB", self.bytes / 1024)
        } else {
            format!("{} B", self.bytes)
        };
        write!(f, "{}, {size}, {} in flight", self.scenario.name(), self.in_flight)
    }
}

/// A choice of cells, such as `http-modern,16,32`; a part that is left out chooses all.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Filter {
    scenario: Option<Scenario>,
    bytes: Option<usize>,
    in_flight: Option<usize>,
}

impl Filter {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut filter = Self::default();
        for part in text.split(',').map(str::trim) {
            if let Some(scenario) = Scenario::ALL.into_iter().find(|scenario| scenario.name() == part) {
                filter.scenario = Some(scenario);
                continue;
            }
            let number: usize = match part {
                "64k" | "64K" => LARGE,
                _ => part.parse().with_context(|| format!("`{part}` is neither a scenario nor a number"))?,
            };
            match number {
                SMALL | LARGE => filter.bytes = Some(number),
                1 | 32 | 256 => filter.in_flight = Some(number),
                _ => bail!("`{part}` is neither a size (16, 64k) nor a number in flight (1, 32, 256)"),
            }
        }
        Ok(filter)
    }

    pub(crate) fn admits_scenario(&self, scenario: Scenario) -> bool {
        self.scenario.is_none_or(|wanted| wanted == scenario)
    }

    pub(crate) fn admits(&self, cell: &Cell) -> bool {
        self.admits_scenario(cell.scenario)
            && self.bytes.is_none_or(|bytes| bytes == cell.bytes)
            && self.in_flight.is_none_or(|in_flight| in_flight == cell.in_flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(filter: &str, count: usize) {
        let filter = Filter::parse(filter).unwrap();
        assert_eq!(Cell::all().iter().filter(|cell| filter.admits(cell)).count(), count);
    }

    #[test]
    fn filter_narrows_by_every_named_part() {
        check("http-modern", 6);
        check("http-modern,16", 3);
        check("http-modern,65536,32", 1);
        check("64k,1", 4);
        check("stdio-yield", 2);
    }

    #[test]
    fn filter_refuses_unknown_parts() {
        for text in ["http", "17", "16,,32", ""] {
            Filter::parse(text).expect_err(text);
        }
    }

    #[test]
    fn every_promise_has_a_cell() {
        let targets = Cell::all().iter().filter_map(Cell::target).collect::<Vec<_>>();
        let count = |wanted: f64| targets.iter().filter(|target| **target == wanted).count();
        assert_eq!([count(1.25), count(1.2), count(1.1), count(2.0), count(3.0)], [2, 2, 6, 2, 1]);
    }
}
