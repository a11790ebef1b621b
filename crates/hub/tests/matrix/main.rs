//! Every revision in front of every other: what a client sees of a server through the bridge.
//!
//! With `MATRIX_ROWS` set to a file, the rows of the table are written there, one JSON object a line.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::needless_pass_by_value,
    clippy::unused_async,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod features;
mod pair;
mod server;

use std::fmt::Write as _;

use trunkline_client::protocol::Revision;

use crate::features::{Cell, FEATURES, Feature, row};
use crate::pair::Pair;

/// Says what a cell should be: a pass, or the sentence for what one of the two revisions has no words for.
fn expected(feature: &Feature, down: Revision, up: Revision) -> Option<String> {
    let older = down.min(up);
    (older < feature.since).then(|| format!("{older} has no {}", feature.lacking))
}

async fn check(feature: &Feature, down: Revision, up: Revision) -> Result<String, String> {
    let pair = Pair::new(down, up).await;
    let cell = (feature.check)(&pair).await;
    match (cell, expected(feature, down, up)) {
        (Cell::Pass, None) => Ok("pass".to_owned()),
        // Whoever calls is told which question could not be put, and to whom.
        (Cell::Refused(said), Some(sentence)) if said.contains("elicitation/create") => Ok(sentence),
        (cell, expected) => Err(format!("{cell:?} instead of {}", expected.as_deref().unwrap_or("a pass"))),
    }
}

#[tokio::test(start_paused = true)]
async fn every_pair_of_revisions_carries_every_feature() {
    let (mut rows, mut failures) = (String::new(), String::new());
    for down in Revision::ALL {
        for up in Revision::ALL {
            for feature in FEATURES {
                let outcome = check(feature, down, up).await;
                let cell = outcome.as_deref().unwrap_or("FAIL");
                let _ = writeln!(rows, "{}", row(down, up, feature, cell));
                if let Err(problem) = &outcome {
                    let _ = writeln!(failures, "{down} in front of {up}: {}: {problem}", feature.name);
                }
            }
        }
    }
    if let Some(path) = std::env::var_os("MATRIX_ROWS") {
        std::fs::write(path, rows).unwrap();
    }
    assert!(failures.is_empty(), "{failures}");
}
