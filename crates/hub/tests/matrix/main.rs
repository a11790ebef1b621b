//! Every revision in front of every other, and every transport in front of every other: what a client sees of a server
//! through the bridge.
//!
//! With `MATRIX_ROWS` set to a folder, the rows of each table are written there, one JSON object a line.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::needless_pass_by_value,
    clippy::unused_async,
    reason = "the helpers of tests are outside of the functions that the lints take for tests"
)]

mod driver;
mod features;
mod pair;
mod route;
mod server;
mod table;

use trunkline_client::protocol::{Era, Revision};

use crate::driver::{DEADLINE, MatrixClient};
use crate::features::{Cell, FEATURES, Feature};
use crate::pair::pair;
use crate::route::{MatrixRoute, MatrixTransport};
use crate::table::MatrixTable;

/// Returns the expected result of a cell: a pass, or the sentence about the feature that one revision lacks.
fn expected(feature: &Feature, down: Revision, up: Revision) -> Option<String> {
    let older = down.min(up);
    (older < feature.since).then(|| format!("{older} has no {}", feature.lacking))
}

async fn check(driver: &MatrixClient, feature: &Feature, expected: Option<String>) -> Result<String, String> {
    let cell = tokio::time::timeout(DEADLINE, (feature.check)(driver)).await;
    match (cell.unwrap_or_else(|_| Cell::Fail("nothing came of it".to_owned())), expected) {
        (Cell::Pass, None) => Ok("pass".to_owned()),
        // The caller gets an error with the feature, and the end of the bridge that lacks it.
        (Cell::Refused(said), Some(sentence))
            if said.contains("elicitation/create")
                && said.contains(&format!("has no {}", feature.lacking)) =>
        {
            Ok(sentence)
        }
        (cell, expected) => Err(format!("{cell:?} instead of {}", expected.as_deref().unwrap_or("a pass"))),
    }
}

#[tokio::test(start_paused = true)]
async fn every_pair_of_revisions_supports_every_feature() {
    let mut table = MatrixTable::new("revisions");
    for down in Revision::ALL {
        for up in Revision::ALL {
            for feature in FEATURES {
                let driver = pair(down, up).await;
                let outcome = check(&driver, feature, expected(feature, down, up)).await;
                table.row([("client", down.as_str()), ("server", up.as_str())], feature.name, outcome);
            }
        }
    }
    table.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_pair_of_transports_supports_every_feature_across_eras() {
    let mut table = MatrixTable::new("transports");
    for (down, up) in
        [Era::Legacy, Era::Modern].map(|down| [Era::Legacy, Era::Modern].map(|up| (down, up))).concat()
    {
        for front in MatrixTransport::ALL {
            for back in MatrixTransport::ALL {
                let place = [
                    ("client era", route::name(down)),
                    ("server era", route::name(up)),
                    ("client", front.name()),
                    ("server", back.name()),
                ];
                match MatrixRoute::open((front, down), (back, up)).await {
                    Ok(route) => {
                        for feature in FEATURES {
                            table.row(place, feature.name, check(&route.driver, feature, None).await);
                        }
                        route.close().await;
                    }
                    Err(refused) => {
                        let lacks =
                            [(front, down), (back, up)].contains(&(MatrixTransport::Sse, Era::Modern));
                        for feature in FEATURES {
                            let outcome = match lacks {
                                true => Ok("HTTP+SSE has no modern era".to_owned()),
                                false => Err(refused.clone()),
                            };
                            table.row(place, feature.name, outcome);
                        }
                    }
                }
            }
        }
    }
    table.close();
}
