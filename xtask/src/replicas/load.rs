//! One run: clients call and listen through the balancer while one thing after the other goes wrong, and their history is checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use super::bed::ReplicaBed;
use super::client::LoadClient;
use super::faults::BedFault;
use super::history::{self, HistoryEvent, HistoryVerdict};
use super::listener;
use super::record::{OutcomeCounts, RequestOutcome, RunRecord};
use super::sdk_clients::SdkClients;
use crate::TaskResult;
use crate::table::TextTable;

/// How many clients listen, beside those that call.
const LISTENERS: usize = 4;

/// How often the resource of the listeners changes.
const CHANGE_INTERVAL: Duration = Duration::from_millis(500);

/// How often it changes after the last fault, and how long each notification may take.
const LAST_CHANGES: usize = 3;
const NOTIFY_LIMIT: Duration = Duration::from_secs(60);

/// How often the end of the run is looked for.
const TURN: Duration = Duration::from_millis(100);

/// What a run does.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadPlan {
    pub(super) calls: usize,
    pub(super) clients: usize,
    /// The time between the beginnings of two faults; `None` is a run without faults.
    pub(super) fault_interval: Option<Duration>,
}

/// What came of a run.
pub(super) struct LoadResult {
    verdict: HistoryVerdict,
    outcomes: OutcomeCounts,
    faults: Vec<BedFault>,
    took: Duration,
}

/// Runs a plan against a bed, with the clients of SDKs beside our own if there are any.
pub(super) fn run(
    bed: &mut ReplicaBed,
    plan: LoadPlan,
    sdk_clients: Option<SdkClients<'_>>,
) -> TaskResult<LoadResult> {
    let record = Arc::new(RunRecord::default());
    let (next, is_over, calls_over) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
    let address = bed.address();
    let started = Instant::now();
    let mut injected = Vec::new();
    let mut failure = None;
    thread::scope(|scope| {
        let (record, next, is_over, calls_over) = (&record, &next, &is_over, &calls_over);
        for number in 0..LISTENERS {
            scope.spawn(move || listener::listen(number_of(number), address, record, is_over));
        }
        for number in LISTENERS..LISTENERS + plan.clients {
            scope.spawn(move || {
                let mut client = LoadClient::new(number_of(number), address, record.clone());
                if let Err(error) = client.open() {
                    record.note_unexpected(format!("client {number} has no session: {error}"));
                } else {
                    loop {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        if place >= plan.calls {
                            break;
                        }
                        client.step(place);
                    }
                }
                calls_over.fetch_add(1, Ordering::SeqCst);
            });
        }
        if let Some(clients) = sdk_clients {
            clients.call_until_over(scope, record, is_over);
        }
        let mut changer = LoadClient::new(number_of(LISTENERS + plan.clients), address, record.clone());
        let mut changed_at = Instant::now();
        let mut fault_at = Instant::now();
        while calls_over.load(Ordering::SeqCst) < plan.clients && failure.is_none() {
            sleep(TURN);
            if changed_at.elapsed() >= CHANGE_INTERVAL {
                changer.change();
                changed_at = Instant::now();
            }
            if plan.fault_interval.is_some_and(|interval| fault_at.elapsed() >= interval) {
                fault_at = Instant::now();
                let fault = BedFault::at(injected.len());
                failure = fault.inject(injected.len(), bed).err().map(|error| error.to_string());
                injected.push(fault);
            }
        }
        for _ in 0..LAST_CHANGES {
            change_and_settle(&mut changer, record);
        }
        is_over.store(true, Ordering::SeqCst);
    });
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    let verdict = history::check(&record.take_history());
    Ok(LoadResult { verdict, outcomes: record.outcomes(), faults: injected, took: started.elapsed() })
}

fn number_of(client: usize) -> u32 {
    u32::try_from(client).unwrap_or(u32::MAX)
}

/// Changes the resource while nothing fails, and waits until all listeners are notified or their time is over.
fn change_and_settle(changer: &mut LoadClient, record: &RunRecord) {
    let limit = Instant::now() + NOTIFY_LIMIT;
    let before = record.notified();
    record.add(HistoryEvent::Changed);
    while !changer.change() && Instant::now() < limit {
        sleep(TURN);
    }
    let is_notified = || {
        let now = record.notified();
        now.len() == LISTENERS && now.iter().all(|(session, count)| before.get(session) < Some(count))
    };
    while !is_notified() && Instant::now() < limit {
        sleep(TURN);
    }
    record.add(HistoryEvent::Settled);
}

impl LoadResult {
    /// Prints what came of the run, and fails if anything happened that may not.
    pub(super) fn conclude(&self, name: &str) -> TaskResult {
        let seconds = self.took.as_secs_f64();
        let HistoryVerdict { called, answered, asked, sessions, events, notified, .. } = &self.verdict;
        println!(
            "{name}: {called} calls in {seconds:.0} s, {answered} answered; {sessions} sessions, {asked} questions, {events} events \
             with an id, {} streams resumed, {notified} notifications",
            self.outcomes.resumed
        );
        let heading: Vec<&str> =
            std::iter::once("request").chain(RequestOutcome::ALL.map(RequestOutcome::name)).collect();
        let mut table = TextTable::new(&heading);
        let mut kinds: Vec<&str> = self.outcomes.counts.keys().map(|(kind, _)| *kind).collect();
        kinds.dedup();
        for kind in kinds {
            let count = |outcome| self.outcomes.counts.get(&(kind, outcome)).copied().unwrap_or_default();
            let counts = RequestOutcome::ALL.map(|outcome| count(outcome).to_string());
            table.row(std::iter::once(kind.to_owned()).chain(counts).collect());
        }
        print!("{}", table.render());
        if !self.faults.is_empty() {
            let mut faults = self.faults.clone();
            faults.sort();
            let counted =
                faults.chunk_by(PartialEq::eq).filter_map(|same| Some((same.first()?.name(), same.len())));
            let listed: Vec<String> = counted.map(|(fault, count)| format!("{fault}: {count}")).collect();
            println!("{}", listed.join(", "));
            println!("slowest 503: {:.1} s", self.outcomes.slowest_unavailable.as_secs_f64());
        }
        let mut wrong: Vec<String> = self.verdict.faults.iter().take(20).map(ToString::to_string).collect();
        wrong.extend(self.outcomes.unexpected.iter().cloned());
        if *answered == 0 {
            wrong.push("no call was answered".to_owned());
        }
        if wrong.is_empty() { Ok(()) } else { Err(format!("{name}: {}", wrong.join("\n  ")).into()) }
    }
}
