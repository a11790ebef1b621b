//! The calls of the clients meanwhile, with results that can belong to no other call.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::super::lock;
use super::client::{CallAnswer, ControlledClient};
use crate::TaskResult;

/// A call, and what only its own answer holds.
pub(super) struct ExpectedCall {
    pub(super) server: &'static str,
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) expected: String,
}

/// Makes the calls of one round of a client.
pub(super) fn calls_of_round(client: &str, round: u32, scratch: &Path) -> Vec<ExpectedCall> {
    let job = |server: &'static str, tool: &str, arguments: Value, expected: String| ExpectedCall {
        server,
        tool: format!("{server}__{tool}"),
        arguments,
        expected,
    };
    let message = format!("{client} says {round}");
    let (hour, minute) = (round / 60 % 24, round % 60);
    let clock = format!("{hour:02}:{minute:02}");
    let number = round + client.len() as u32 * 1_000_000;
    vec![
        job("everything", "echo", json!({ "message": message }), message.clone()),
        job(
            "time",
            "convert_time",
            json!({ "source_timezone": "UTC", "time": clock, "target_timezone": "Asia/Tokyo" }),
            format!("T{clock}:00"),
        ),
        job(
            "git",
            "git_status",
            json!({ "repo_path": repository(scratch, client) }),
            format!("only-{client}.txt"),
        ),
        job(
            "filesystem",
            "read_text_file",
            json!({ "path": scratch.join("files").join(format!("{client}.txt")) }),
            format!("the note of {client}"),
        ),
        job("memory", "search_nodes", json!({ "query": format!("friend-of-{client}") }), {
            format!("friend-of-{client}")
        }),
        job("modern", "add", json!({ "a": number, "b": 1 }), (number + 1).to_string()),
    ]
}

pub(super) fn repository(scratch: &Path, client: &str) -> std::path::PathBuf {
    scratch.join(format!("repository-{client}"))
}

/// What became of all calls.
#[derive(Default)]
pub(super) struct CallResults {
    counts: Mutex<BTreeMap<(&'static str, &'static str), CallCount>>,
    faults: Mutex<Vec<String>>,
}

#[derive(Clone, Copy, Default)]
pub(super) struct CallCount {
    pub(super) answered: u64,
    pub(super) refused: u64,
}

impl CallResults {
    /// Does one call and notes what came of it; returns whether it was answered.
    pub(super) fn run(&self, client: &ControlledClient, job: &ExpectedCall) -> bool {
        let outcome = client.call(&job.tool, &job.arguments);
        let is_answered = matches!(&outcome, Ok(CallAnswer::Text(text)) if text.contains(&job.expected));
        let fault = match outcome {
            Ok(CallAnswer::Text(_)) if is_answered => None,
            Ok(CallAnswer::Text(text)) => Some(format!("is not its own answer: {text}")),
            Ok(CallAnswer::Refused(why)) => {
                unclear(job, &why).then(|| format!("does not say who failed: {why}"))
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(fault) = fault {
            lock(&self.faults).push(format!("{} {}: {fault}", client.name, job.tool));
        }
        let mut counts = lock(&self.counts);
        let count = counts.entry((client.name, job.server)).or_default();
        let slot = if is_answered { &mut count.answered } else { &mut count.refused };
        *slot += 1;
        is_answered
    }

    pub(super) fn faults(&self) -> Vec<String> {
        lock(&self.faults).clone()
    }

    pub(super) fn counts(&self) -> BTreeMap<(&'static str, &'static str), CallCount> {
        lock(&self.counts).clone()
    }
}

/// A refusal has to name the server, or the tool of the server.
fn unclear(job: &ExpectedCall, why: &str) -> bool {
    !why.contains(job.server)
}

/// Makes one call after the other until it is stopped.
pub(super) fn run_calls(client: &ControlledClient, scratch: &Path, tally: &CallResults, stop: &AtomicBool) {
    for round in 0.. {
        for job in calls_of_round(client.name, round, scratch) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            tally.run(client, &job);
        }
    }
}

/// Lets the memory know something of each client, one after the other: it has no lock of its own.
pub(super) fn seed_memory(client: &ControlledClient) -> TaskResult {
    let entity =
        json!({ "name": format!("friend-of-{}", client.name), "entityType": "friend", "observations": [] });
    match client.call("memory__create_entities", &json!({ "entities": [entity] }))? {
        CallAnswer::Text(_) => Ok(()),
        CallAnswer::Refused(why) => Err(format!("{}: {why}", client.name).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_clients_and_no_two_rounds_await_the_same_words_where_a_tool_repeats_them() {
        let mut seen = std::collections::BTreeSet::new();
        for client in ["python-v1", "python-v2", "node-v1", "node-v2"] {
            for round in 0..50 {
                let jobs = calls_of_round(client, round, Path::new("s"));
                let echo = jobs.iter().find(|job| job.server == "everything").unwrap();
                assert!(seen.insert(echo.expected.clone()), "{}", echo.expected);
            }
        }
    }
}
