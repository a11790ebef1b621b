use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use parking_lot::Mutex;

/// The most crossed messages that are printed.
const SHOWN: usize = 20;

/// What all clients found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    shared: Mutex<FindingCounts>,
}

#[derive(Debug, Default)]
struct FindingCounts {
    calls: u64,
    questions: u64,
    /// Calls that were refused, such as while all connections are in use, and repeated.
    failed: u64,
    first_failure: Option<String>,
    crossed: Vec<String>,
    processes: BTreeSet<(String, u64)>,
}

impl Findings {
    /// Records something that reached a client and is not its own.
    pub(crate) fn record(&self, problem: String) {
        self.shared.lock().crossed.push(problem);
    }

    /// Records the process that answered a call.
    pub(crate) fn answered(&self, server: &str, process: u64) {
        let mut counts = self.shared.lock();
        counts.calls += 1;
        counts.processes.insert((server.to_owned(), process));
    }

    /// Records an answered call of a server that does not tell its process.
    pub(crate) fn answered_elsewhere(&self) {
        self.shared.lock().calls += 1;
    }

    /// Returns what crossed.
    #[cfg(test)]
    pub(crate) fn crossed(&self) -> Vec<String> {
        self.shared.lock().crossed.clone()
    }

    pub(crate) fn asked(&self) {
        self.shared.lock().questions += 1;
    }

    pub(crate) fn failed(&self, problem: String) {
        let mut counts = self.shared.lock();
        counts.failed += 1;
        counts.first_failure.get_or_insert(problem);
    }

    /// Describes the counts.
    pub(crate) fn counts(&self) -> String {
        self.shared.lock().describe()
    }

    /// Prints the result; a failure if anything crossed, or if fewer calls were answered than wanted.
    pub(crate) fn print(&self, is_shared: bool, wanted: u64, took: Duration) -> ExitCode {
        let counts = self.shared.lock();
        for problem in counts.crossed.iter().take(SHOWN) {
            println!("crossed: {problem}");
        }
        if let Some(first) = &counts.first_failure {
            println!("the first refused call: {first}");
        }
        let relation = if is_shared { "loopback" } else { "strangers" };
        println!("{relation}: {}, {} s", counts.describe(), took.as_secs());
        let is_good = counts.crossed.is_empty() && counts.calls >= wanted;
        if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl FindingCounts {
    fn describe(&self) -> String {
        let (refused, crossed) = (self.failed, self.crossed.len());
        format!(
            "{} calls answered, {} questions, {refused} refused and repeated, {crossed} crossed, {} processes of servers that tell theirs",
            self.calls,
            self.questions,
            self.processes.len(),
        )
    }
}
