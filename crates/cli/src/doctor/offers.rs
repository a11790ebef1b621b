use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trunkline_client::{Call, Client, Error, List};
use trunkline_protocol::model::ServerCapabilities;
use trunkline_protocol::{Era, Raw};

use super::parts::check_parts;
use super::report::{Report, duration_words};
use crate::terminal::visible_line;

/// How often the server is asked in order to know how fast it answers.
const ROUNDS: usize = 5;

/// Reads all lists, and says what is wrong with what is in them.
pub(crate) async fn look_at_offers(client: &Client, report: &mut Report) {
    let ServerCapabilities { tools, prompts, resources, .. } = client.server().capabilities.clone();
    let tools = list("tools", tools.is_some(), client.tools(), report).await;
    let prompts = list("prompts", prompts.is_some(), client.prompts(), report).await;
    let has_resources = resources.is_some();
    let resources = list("resources", has_resources, client.resources(), report).await;
    // Not every server that has resources answers for templates, and the protocol has no word for that.
    let templates = if has_resources { client.templates().await.ok() } else { None };
    report.take_up(check_parts(
        &plain(tools.as_deref()),
        &plain(prompts.as_deref()),
        &plain(resources.as_deref()),
        &plain(templates.as_deref()),
    ));
}

async fn list<T>(
    what: &str,
    offered: bool,
    listing: impl Future<Output = Result<Arc<List<T>>, Error>>,
    report: &mut Report,
) -> Option<Arc<List<T>>> {
    if !offered {
        report.absent(what, "the server has none");
        return None;
    }
    let begun = Instant::now();
    match listing.await {
        Ok(list) => {
            report.timed(what, &format!("{} listed", list.len()), begun.elapsed());
            for left_out in &list.left_out {
                let subject = format!("{what} `{}`", visible_line(&left_out.name));
                report.problem(&subject, &format!("it is left out: {}", left_out.reason));
            }
            for repaired in &list.repaired {
                let subject = format!("{what} `{}`", visible_line(&repaired.name));
                report.problem(&subject, &format!("clients may reject it: {}", repaired.repairs));
            }
            Some(list)
        }
        Err(error) => {
            report.problem(what, &format!("they cannot be listed: {error}"));
            None
        }
    }
}

fn plain<T>(list: Option<&List<T>>) -> Vec<&T> {
    list.into_iter().flat_map(|list| list.iter()).map(|item| &**item).collect()
}

/// Asks the server a few times for what costs it least, and says how long it took.
pub(crate) async fn look_at_speed(client: &Client, report: &mut Report) {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        match ask(client).await {
            Ok(took) => times.push(took),
            Err(error) => {
                report.problem("speed", &format!("the server does not answer: {error}"));
                return;
            }
        }
    }
    times.sort_unstable();
    let (Some(fastest), Some(median), Some(slowest)) = (times.first(), times.get(ROUNDS / 2), times.last())
    else {
        return;
    };
    let words =
        format!("{ROUNDS} answers, {} to {}, median", duration_words(*fastest), duration_words(*slowest));
    report.timed("speed", &words, *median);
}

/// Sends the request that each era has for being there.
async fn ask(client: &Client) -> Result<Duration, Error> {
    if client.server().revision.era() == Era::Legacy {
        return client.ping().await;
    }
    let begun = Instant::now();
    client.run(Call::other("server/discover", Raw::EMPTY_OBJECT)).await?;
    Ok(begun.elapsed())
}
