//! The page with all tables; one that is not measured stays as it is.

use super::grid::FeatureGrid;
use crate::TaskResult;
use crate::conformance::bridge;

/// The introduction to all tables.
const TITLE: &str = "\
# What the bridge carries

These tables are measured, except where noted: a client at one end, `trunkline bridge` or the hub inside it in the middle, and a
server at the other end. `cargo xtask matrix` measures them again and writes this page; `cargo xtask matrix --check` fails if the
page differs from the measurement.

`✓` is a pass: the client sees what it would see without a bridge. A number refers to the note below the table on what the two
protocol versions cannot express; such a call fails with an error to that effect, and nothing is dropped silently.
";

/// The introduction to each table, by its name.
const INTRODUCTIONS: &[(&str, &str, &str)] = &[
    (
        "revisions",
        "Revision by revision",
        "\
A column is the protocol version of the client. The marks in it are for the versions of the server, in the order 2024-11-05,
2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28. Client and server are ours, pinned to a version, in one process.",
    ),
    (
        "transports",
        "Transport by transport",
        "\
A column is the transport between client and bridge. The marks in it are for the transports between bridge and server, in the
order stdio, Streamable HTTP, HTTP+SSE, WebSocket. Legacy is 2025-11-25, modern 2026-07-28; each end speaks only its own era. Over
stdio the other end is a separate process.",
    ),
    (
        "peers",
        "Official SDKs",
        "\
The marks in a column are for the era at the other end, legacy and modern. Clients connect to the bridge over Streamable HTTP, the
oldest one over stdio, and behind the bridge is our server in one era only. The bridge starts servers over stdio, and our client
uses one era only. Servers on the first two releases have no tool that uses form elicitation: their marks for elicitation follow
from the protocol version and were not measured. A server on PyPI `mcp` 1.7.1 stops responding after a cancellation and exits at
the next request, with or without a bridge; there the mark for cancellation means that the bridge restarts it.",
    ),
];

/// The introduction to the runs of the official suite.
const SUITE: &str = "\
`cargo xtask conformance --through-bridge` runs the official conformance suite against `trunkline bridge`, in front of servers
that speak only the other era or are reached over another transport, and evaluates every check: no failure and no warning except
those below, for what a legacy server cannot express.

In front of a server that requests the roots of every legacy session when it begins, as ours does with `roots_at_start`, a modern
client with roots gets the request at the beginning of every call: it has no session in which it could have answered earlier, and
only the client knows its folders.

The client scenarios are run through `trunkline bridge` as well, also those with authorization, where the bridge is the OAuth
client of the suite's server: the fixture calls tools through the bridge, and opens the connect link that it is given. Both scored
sets, their extensions and the scenarios of 2025-03-26 pass, except `elicitation-sep1034-client-defaults`: there the server sends
its input request on the standalone stream and not on that of the call, and the bridge passes on only what belongs to a call.";

/// The tables by name, each as the text below its heading.
#[derive(Debug)]
pub(super) struct MatrixPage {
    sections: Vec<(&'static str, Option<String>)>,
}

impl MatrixPage {
    /// Reads the tables of a page.
    pub(super) fn read(text: &str) -> Self {
        let section = |heading: &str| {
            let (_, after) = text.split_once(&format!("\n## {heading}\n"))?;
            Some(after.split_once("\n## ").map_or(after, |(section, _)| section).trim().to_owned())
        };
        let sections = INTRODUCTIONS.iter().map(|(name, heading, words)| {
            // The words above a table are ours to change at any time.
            let measured = section(heading).and_then(|text| {
                let at = ["\n| feature ", "\n### "].iter().filter_map(|begin| text.find(begin)).min()?;
                text.get(at..).map(|text| text.trim().to_owned())
            });
            (*name, measured.map(|measured| join(words, &measured)))
        });
        Self { sections: sections.collect() }
    }

    /// Replaces a table by what was measured.
    ///
    /// # Errors
    /// A cell is missing.
    pub(super) fn put(&mut self, name: &str, grids: &[FeatureGrid]) -> TaskResult {
        let words = INTRODUCTIONS.iter().find(|(known, ..)| *known == name).map_or("", |(_, _, words)| words);
        for (known, section) in &mut self.sections {
            if *known == name {
                *section = Some(join(words, &measured(grids)?));
            }
        }
        Ok(())
    }

    /// Writes the page; a table that was never measured is not on it.
    pub(super) fn write(self) -> String {
        let mut text = TITLE.to_owned();
        for (name, section) in self.sections {
            let Some(section) = section else { continue };
            let heading =
                INTRODUCTIONS.iter().find(|(known, ..)| *known == name).map_or("", |(_, heading, _)| heading);
            text.push_str(&format!("\n## {heading}\n\n{}\n", section));
        }
        text.push_str(&format!("\n## The official suite\n\n{SUITE}\n\n{}\n", bridge::settings_text()));
        text
    }
}

fn join(words: &str, measured: &str) -> String {
    format!("{words}\n\n{measured}")
}

/// Writes the grids of one table, and the sentences that they refer to.
fn measured(grids: &[FeatureGrid]) -> TaskResult<String> {
    let (mut parts, mut sentences) = (Vec::new(), Vec::new());
    for grid in grids {
        if !grid.heading.is_empty() {
            parts.push(format!("### {}", grid.heading));
        }
        parts.push(grid.write(&mut sentences)?.trim().to_owned());
    }
    if !sentences.is_empty() {
        let numbered = sentences.iter().enumerate().map(|(at, sentence)| format!("{}. {sentence}.", at + 1));
        parts.push(numbered.collect::<Vec<_>>().join("\n"));
    }
    Ok(parts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::super::cell::FeatureCell;
    use super::*;

    fn grid(heading: &str, cell: &str) -> FeatureGrid {
        let mut grid = FeatureGrid::new(heading);
        grid.put("list", "a", "x", FeatureCell::read(cell).unwrap());
        grid
    }

    fn whole() -> String {
        let mut page = MatrixPage::read("");
        for (name, ..) in INTRODUCTIONS {
            page.put(name, &[grid("One", "pass"), grid("Two", "neither can")]).unwrap();
        }
        page.write()
    }

    #[test]
    fn unmeasured_table_is_kept_unchanged() {
        let before = whole();
        assert_eq!(MatrixPage::read(&before).write(), before);
        let mut page = MatrixPage::read(&before);
        page.put("revisions", &[grid("", "pass")]).unwrap();
        let after = page.write();
        assert_ne!(after, before);
        assert!(after.contains("### Two") && after.contains("1. neither can."), "{after}");
    }

    #[test]
    fn never_measured_table_is_left_out() {
        assert!(!MatrixPage::read("").write().contains("## Revision by revision"));
        assert!(whole().contains("## Revision by revision"));
    }
}
