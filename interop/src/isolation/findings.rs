use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::time::Duration;

use parking_lot::Mutex;

/// The most crossed messages and reasons of refusals that are printed.
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
    /// Calls that were refused, such as while all connections are in use, and repeated: how many for which reason.
    refused: BTreeMap<String, u64>,
    crossed: Vec<String>,
    processes: BTreeSet<(String, u64)>,
    folder_calls: u64,
    /// Folder calls that came before the server had resolved the roots of its client, which nothing shows to a hub.
    early_folder_calls: u64,
}

/// At most one in so many folder calls may come too early, and none of fewer calls: a machine that is busy enough delays the
/// server longer than the hub waits.
const EARLY_RATIO: u64 = 2000;

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

    /// Records a call of the filesystem server, which does not report its process.
    pub(crate) fn listed_folders(&self, is_early: bool) {
        let mut counts = self.shared.lock();
        counts.calls += u64::from(!is_early);
        counts.folder_calls += 1;
        counts.early_folder_calls += u64::from(is_early);
    }

    /// Returns what crossed.
    #[cfg(test)]
    pub(crate) fn crossed(&self) -> Vec<String> {
        self.shared.lock().crossed.clone()
    }

    pub(crate) fn asked(&self) {
        self.shared.lock().questions += 1;
    }

    /// Records a refused call of a server.
    pub(crate) fn refused(&self, server: &str, problem: &str) {
        let mut counts = self.shared.lock();
        // Numbers differ from call to call.
        let kind = problem.replace(|letter: char| letter.is_ascii_digit(), "#");
        *counts.refused.entry(format!("{server}: {kind}")).or_default() += 1;
    }

    /// Returns how many calls were answered.
    pub(crate) fn answered_calls(&self) -> u64 {
        self.shared.lock().calls
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
        let mut refused: Vec<_> = counts.refused.iter().collect();
        refused.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (kind, count) in refused.into_iter().take(SHOWN) {
            println!("refused {count} times: {kind}");
        }
        let relation = if is_shared { "loopback" } else { "strangers" };
        println!("{relation}: {}, {} s", counts.describe(), took.as_secs());
        let is_early = counts.early_folder_calls > counts.folder_calls / EARLY_RATIO;
        println!(
            "{} of {} folder calls came before the roots",
            counts.early_folder_calls, counts.folder_calls
        );
        let is_good = counts.crossed.is_empty() && !is_early && counts.calls >= wanted;
        if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl FindingCounts {
    fn describe(&self) -> String {
        let (refused, crossed) = (self.refused.values().sum::<u64>(), self.crossed.len());
        format!(
            "{} calls answered, {} questions, {refused} refused and repeated, {crossed} crossed, {} processes of servers that tell theirs",
            self.calls,
            self.questions,
            self.processes.len(),
        )
    }
}
