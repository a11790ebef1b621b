use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trunkline_client::{Client, ClientCall, Error, ItemList};
use trunkline_protocol::model::ServerCapabilities;
use trunkline_protocol::{Era, RawJson};

use super::item_checks::check_items;
use super::report::{DoctorReport, format_duration};
use crate::terminal::escape_line;

/// The number of requests for the latency measurement.
const LATENCY_SAMPLES: usize = 5;

/// Fetches all lists, and reports problems with their items.
pub(crate) async fn check_lists(client: &Client, report: &mut DoctorReport) {
    let ServerCapabilities { tools, prompts, resources, .. } = client.server().capabilities.clone();
    let tools = fetch_list("tools", tools.is_some(), client.tools(), report).await;
    let prompts = fetch_list("prompts", prompts.is_some(), client.prompts(), report).await;
    let has_resources = resources.is_some();
    let resources = fetch_list("resources", has_resources, client.resources(), report).await;
    // Not every server that has resources answers for templates, and the protocol has no word for that.
    let templates = if has_resources { client.templates().await.ok() } else { None };
    report.add_findings(check_items(
        &list_items(tools.as_deref()),
        &list_items(prompts.as_deref()),
        &list_items(resources.as_deref()),
        &list_items(templates.as_deref()),
    ));
}

async fn fetch_list<T>(
    what: &str,
    offered: bool,
    listing: impl Future<Output = Result<Arc<ItemList<T>>, Error>>,
    report: &mut DoctorReport,
) -> Option<Arc<ItemList<T>>> {
    if !offered {
        report.not_applicable(what, "the server has none");
        return None;
    }
    let begun = Instant::now();
    match listing.await {
        Ok(list) => {
            report.passed_in(what, &format!("{} listed", list.len()), begun.elapsed());
            for left_out in &list.skipped {
                let subject = format!("{what} `{}`", escape_line(&left_out.name));
                report.problem(&subject, &format!("clients skip it: {}", left_out.reason));
            }
            for repaired in &list.repaired {
                let subject = format!("{what} `{}`", escape_line(&repaired.name));
                report.problem(&subject, &format!("clients may reject it: {}", repaired.repairs));
            }
            Some(list)
        }
        Err(error) => {
            report.problem(what, &format!("cannot list them: {error}"));
            None
        }
    }
}

fn list_items<T>(list: Option<&ItemList<T>>) -> Vec<&T> {
    list.into_iter().flat_map(|list| list.iter()).map(|item| &**item).collect()
}

/// Measures the latency with a few of the cheapest requests.
pub(crate) async fn measure_latency(client: &Client, report: &mut DoctorReport) {
    let mut times = Vec::with_capacity(LATENCY_SAMPLES);
    for _ in 0..LATENCY_SAMPLES {
        match timed_ping(client).await {
            Ok(took) => times.push(took),
            Err(error) => {
                report.problem("speed", &format!("no response: {error}"));
                return;
            }
        }
    }
    times.sort_unstable();
    let (Some(fastest), Some(median), Some(slowest)) =
        (times.first(), times.get(LATENCY_SAMPLES / 2), times.last())
    else {
        return;
    };
    let words = format!(
        "{LATENCY_SAMPLES} requests, {} to {}, median",
        format_duration(*fastest),
        format_duration(*slowest)
    );
    report.passed_in("speed", &words, *median);
}

/// Sends the request that each era has for being there.
async fn timed_ping(client: &Client) -> Result<Duration, Error> {
    if client.server().revision.era() == Era::Legacy {
        return client.ping().await;
    }
    let begun = Instant::now();
    client.run(ClientCall::other("server/discover", RawJson::EMPTY_OBJECT)).await?;
    Ok(begun.elapsed())
}
