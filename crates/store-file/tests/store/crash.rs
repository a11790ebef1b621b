//! A process under load that is killed at any point: what it acknowledged is there, and what was deleted is not.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use trunkline_session::{
    EventId, EventReplay, EventStore as _, Principal, SessionId, SessionLimits, SessionStore as _, StateKeys,
    StreamId, Timestamp,
};
use trunkline_store_file::{FileStore, FileStoreLimits};

use crate::fixture::{NOW, event, folder, keys, record};

/// Names the store to the child process. Without it, the test that is the child process does nothing.
const STORE_VARIABLE: &str = "TRUNKLINE_TEST_STORE";

/// How often a process is killed; `cargo xtask crashes` sets another number.
const POINTS_VARIABLE: &str = "CRASH_POINTS";
const POINTS: u64 = 6;

/// How many tasks of the child write at the same time, so that commits are shared.
const WRITERS: usize = 8;

fn open(path: &Path) -> FileStore {
    let keys: StateKeys = keys(path.parent().unwrap(), "crash");
    let sessions = SessionLimits { total: 1 << 20, total_bytes: 1 << 30, ..SessionLimits::default() };
    FileStore::open(path, &keys, FileStoreLimits { sessions, ..Default::default() }).unwrap()
}

fn report(word: &str, id: SessionId) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "\n{word} {id}").unwrap();
    stdout.flush().unwrap();
}

/// Is the child process: opens sessions, sends events in them and deletes half of them, and reports each step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_that_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(STORE_VARIABLE) else { return };
    let store = open(Path::new(&path));
    let writers: Vec<_> = (0..WRITERS).map(|_| tokio::spawn(write_for_ever(store.clone()))).collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

async fn write_for_ever(store: FileStore) {
    for round in 0.. {
        let own = record(&Principal::Anonymous, NOW);
        store.sessions().create(own.clone(), NOW).await.unwrap();
        report("created", own.id);
        store.events().append(own.id, event(1, 0), NOW).wait().await.unwrap();
        store.events().append(own.id, event(1, 1), NOW).wait().await.unwrap();
        report("sent", own.id);
        if round % 2 == 0 {
            report("deleting", own.id);
            assert!(store.sessions().delete(own.id, &Principal::Anonymous).await.unwrap());
            report("deleted", own.id);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the process is killed and its output is read here")]
fn start_child(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child_that_writes_until_it_is_killed", "--nocapture", "--test-threads=1"])
        .env(STORE_VARIABLE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What the child has reported, by step.
#[derive(Default)]
struct Reported(HashMap<String, HashSet<SessionId>>);

impl Reported {
    /// Reads a line; returns whether it is a report.
    fn read(&mut self, line: &str) -> bool {
        let Some((step, id)) = line.split_once(' ') else { return false };
        let Some(id) = SessionId::parse(id.as_bytes()) else { return false };
        self.0.entry(step.to_owned()).or_default().insert(id)
    }

    fn of(&self, step: &str) -> HashSet<SessionId> {
        self.0.get(step).cloned().unwrap_or_default()
    }
}

async fn check(path: &Path, reported: &Reported) {
    let store = open(path);
    let later = Timestamp(NOW.0 + 1);
    let (deleting, sent) = (reported.of("deleting"), reported.of("sent"));
    for id in reported.of("created").difference(&deleting) {
        let found = store.sessions().get(*id, &Principal::Anonymous, later).await.unwrap();
        assert!(found.is_some(), "session {id:?} was acknowledged and is gone");
        if sent.contains(id) {
            let first = EventId { stream: StreamId(1), seq: 0 };
            let replay = store.events().replay(*id, first, later).await.unwrap();
            assert_eq!(replay, EventReplay::Events(vec![event(1, 1)]), "an event of {id:?} is gone");
        }
    }
    for id in reported.of("deleted") {
        let found = store.sessions().get(id, &Principal::Anonymous, later).await.unwrap();
        assert!(found.is_none(), "session {id:?} was deleted and is back");
    }
}

#[tokio::test]
async fn acknowledged_changes_survive_a_killed_process() {
    let points = std::env::var(POINTS_VARIABLE).ok().and_then(|points| points.parse().ok()).unwrap_or(POINTS);
    for point in 0..points {
        let (_folder, path) = folder();
        let mut reported = Reported::default();
        // The second process goes on with what the first one left.
        for life in 0..2 {
            let mut child = start_child(&path);
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            // Another moment of a commit each time, after another number of steps.
            let steps = 1 + (point * 7 + life * 13) % 60;
            let mut seen = 0;
            while seen < steps {
                let line = lines.next().expect("the child reports until it is killed");
                seen += u64::from(reported.read(&line));
            }
            std::thread::sleep(Duration::from_micros(point * 397 % 7_000));
            child.kill().unwrap();
            for line in lines {
                reported.read(&line);
            }
            child.wait().unwrap();
            check(&path, &reported).await;
        }
        assert!(!reported.of("created").is_empty());
    }
}
