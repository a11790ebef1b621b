//! A rate limit for the log, so that no peer can fill a disk with it.
//!
//! Log lines of one kind have one place in the code and name one server. Each kind has a token bucket, and all kinds share
//! another. What is beyond them is counted, and a summary follows within [`SUMMARY_INTERVAL`]. Lines of the levels debug and
//! trace are not limited: an operator who wants them wants all of them. Neither are audit lines, which are a record.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// The lines of one kind that are written at once.
const BURST_PER_KIND: u32 = 20;

/// How long one kind waits for a further line after its burst.
const REFILL_PER_KIND: Duration = Duration::from_secs(10);

/// The lines of all kinds that are written at once.
const BURST: u32 = 500;

/// How long all kinds together wait for a further line after their burst.
const REFILL: Duration = Duration::from_millis(200);

/// How many kinds are distinguished; further ones share one bucket.
const MAX_KINDS: usize = 512;

/// How often suppressed lines are summarized.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(10);

/// The kinds that one summary names; the others are added up.
const MAX_SUMMARIES: usize = 10;

/// How much of a suppressed line is repeated in its summary.
const EXCERPT_CHARS: usize = 120;

/// The target of the lines that are never limited: audit lines, and the summaries themselves.
const UNLIMITED_TARGETS: [&str; 2] = ["audit", module_path!()];

/// Suppresses repeated log lines.
pub(crate) struct LogLimit {
    buckets: Arc<Mutex<LogBuckets>>,
    summarizer: Thread,
}

impl LogLimit {
    /// Makes the limit, with a thread that writes the summaries.
    pub(crate) fn start() -> std::io::Result<Self> {
        let buckets = Arc::new(Mutex::new(LogBuckets::new(Instant::now())));
        let shared = Arc::downgrade(&buckets);
        let thread = thread::Builder::new().name("log-limit".to_owned()).spawn(move || {
            loop {
                thread::park();
                thread::sleep(SUMMARY_INTERVAL);
                let Some(buckets) = shared.upgrade() else { return };
                let summaries = buckets.lock().take_suppressed();
                log_summaries(&summaries);
            }
        })?;
        Ok(Self { buckets, summarizer: thread.thread().clone() })
    }
}

impl<S: Subscriber> Layer<S> for LogLimit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO || UNLIMITED_TARGETS.contains(&metadata.target()) {
            return true;
        }
        let kind = LogKind { callsite: metadata.callsite(), server: FieldText::of(event, "server") };
        let server = kind.server.clone();
        let excerpt = || excerpt_of(event, server.as_deref());
        let is_first = match self.buckets.lock().admit(kind, Instant::now(), excerpt) {
            Admission::Written => return true,
            Admission::Suppressed { is_first } => is_first,
        };
        crate::process_counter::ProcessCounter::SuppressedLogLines.add(1);
        if is_first {
            self.summarizer.unpark();
        }
        false
    }
}

/// Writes how many lines were suppressed, the most frequent ones by what they were about.
fn log_summaries(summaries: &[(String, u64)]) {
    for (excerpt, count) in summaries.iter().take(MAX_SUMMARIES) {
        tracing::warn!(suppressed = count, "suppressed log lines like: {excerpt}");
    }
    let others: u64 = summaries.iter().skip(MAX_SUMMARIES).map(|(_, count)| count).sum();
    if others > 0 {
        tracing::warn!(suppressed = others, "suppressed further log lines");
    }
}

/// What distinguishes log lines that are counted apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LogKind {
    callsite: Identifier,
    /// The server that the line names, if any.
    server: Option<String>,
}

/// One field of a line, as text.
struct FieldText {
    name: &'static str,
    text: Option<String>,
}

impl FieldText {
    fn of(event: &Event<'_>, name: &'static str) -> Option<String> {
        let mut field = Self { name, text: None };
        event.record(&mut field);
        field.text
    }
}

impl Visit for FieldText {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == self.name {
            self.text = Some(format!("{value:?}"));
        }
    }
}

/// Returns the beginning of a line, for its summary.
fn excerpt_of(event: &Event<'_>, server: Option<&str>) -> String {
    let server = server.map(|name| format!("server {name}: ")).unwrap_or_default();
    let message = FieldText::of(event, "message").unwrap_or_default();
    format!("{server}{message}").chars().take(EXCERPT_CHARS).collect()
}

/// What becomes of a line.
#[derive(Debug, PartialEq, Eq)]
enum Admission {
    Written,
    /// It is counted. The first one since the last summary starts the wait for the next.
    Suppressed {
        is_first: bool,
    },
}

/// The buckets of all kinds. Time is an argument.
struct LogBuckets {
    all: TokenBucket,
    kinds: HashMap<Option<LogKind>, KindBucket>,
    is_suppressing: bool,
}

struct KindBucket {
    tokens: TokenBucket,
    suppressed: u64,
    excerpt: String,
}

impl LogBuckets {
    fn new(now: Instant) -> Self {
        Self { all: TokenBucket::full(BURST, REFILL, now), kinds: HashMap::new(), is_suppressing: false }
    }

    fn admit(&mut self, kind: LogKind, now: Instant, excerpt: impl FnOnce() -> String) -> Admission {
        let mut key = Some(kind);
        if !self.kinds.contains_key(&key) && self.kinds.len() >= MAX_KINDS {
            self.kinds.retain(|_, bucket| bucket.suppressed > 0 || !bucket.tokens.is_full(now));
            if self.kinds.len() >= MAX_KINDS {
                key = None;
            }
        }
        let bucket = self.kinds.entry(key).or_insert_with(|| KindBucket {
            tokens: TokenBucket::full(BURST_PER_KIND, REFILL_PER_KIND, now),
            suppressed: 0,
            excerpt: String::new(),
        });
        // Both are checked in this order, so that a kind without tokens takes none of the others'.
        if bucket.tokens.take(now) && self.all.take(now) {
            return Admission::Written;
        }
        if bucket.suppressed == 0 {
            bucket.excerpt = excerpt();
        }
        bucket.suppressed += 1;
        Admission::Suppressed { is_first: !std::mem::replace(&mut self.is_suppressing, true) }
    }

    /// Returns what was suppressed since this was called last, the most frequent first.
    fn take_suppressed(&mut self) -> Vec<(String, u64)> {
        self.is_suppressing = false;
        let suppressed = self.kinds.values_mut().filter(|bucket| bucket.suppressed > 0);
        let mut taken: Vec<_> = suppressed
            .map(|bucket| (std::mem::take(&mut bucket.excerpt), std::mem::take(&mut bucket.suppressed)))
            .collect();
        taken.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        taken
    }
}

/// A token bucket: so many at once, and a further one after each interval.
struct TokenBucket {
    tokens: u32,
    burst: u32,
    refill: Duration,
    refilled_at: Instant,
}

impl TokenBucket {
    fn full(burst: u32, refill: Duration, now: Instant) -> Self {
        Self { tokens: burst, burst, refill, refilled_at: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        self.fill(now);
        let has_one = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        has_one
    }

    fn is_full(&self, now: Instant) -> bool {
        let missing = self.burst - self.tokens;
        now.saturating_duration_since(self.refilled_at) >= self.refill * missing
    }

    fn fill(&mut self, now: Instant) {
        if self.is_full(now) {
            (self.tokens, self.refilled_at) = (self.burst, now);
            return;
        }
        while self.refilled_at + self.refill <= now {
            self.tokens += 1;
            self.refilled_at += self.refill;
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::logging::tests::LogSink;
    use crate::process_counter::ProcessCounter;

    #[test]
    fn token_bucket_allows_its_burst_and_then_one_per_interval() {
        let start = Instant::now();
        let mut bucket = TokenBucket::full(3, Duration::from_secs(10), start);
        let at = |seconds| start + Duration::from_secs(seconds);
        let table = [
            (0, true),
            (0, true),
            (0, true),
            (0, false),
            (9, false),
            (10, true),
            (10, false),
            (25, true),
            (29, false),
        ];
        for (number, (seconds, expected)) in table.into_iter().enumerate() {
            assert_eq!(bucket.take(at(seconds)), expected, "row {number}");
        }
        assert!(!bucket.is_full(at(30)) && bucket.is_full(at(60)));
    }

    #[test]
    fn lines_beyond_the_burst_are_suppressed_per_server_and_summarized() {
        let sink = LogSink::default();
        let limit = LogLimit::start().unwrap();
        let before = ProcessCounter::SuppressedLogLines.get();
        let buckets = limit.buckets.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer({
                let sink = sink.clone();
                move || sink.clone()
            })
            .with_ansi(false)
            .finish()
            .with(limit);
        tracing::subscriber::with_default(subscriber, || {
            for number in 0..1000 {
                for server in ["noisy", "other"] {
                    if server == "noisy" || number < 5 {
                        tracing::warn!(server, number, "left out a tool");
                    }
                }
                tracing::info!(target: "audit", number, "ran");
            }
            let suppressed = buckets.lock().take_suppressed();
            assert_eq!(suppressed, [("server noisy: left out a tool".to_owned(), 980)]);
            log_summaries(&suppressed);
        });
        // Other tests may suppress lines at the same time.
        assert!(ProcessCounter::SuppressedLogLines.get() >= before + 980);
        let text = String::from_utf8(sink.0.lock().clone()).unwrap();
        let count = |words: &str| text.lines().filter(|line| line.contains(words)).count();
        assert_eq!(count("server=\"noisy\""), 20);
        assert_eq!(count("server=\"other\""), 5);
        assert_eq!(count("audit: ran"), 1000);
        assert_eq!(
            count("suppressed log lines like: server noisy: left out a tool suppressed=980"),
            1,
            "{text}"
        );
    }

    #[test]
    fn many_kinds_share_one_bucket_and_a_total() {
        let start = Instant::now();
        let mut buckets = LogBuckets::new(start);
        let callsite = Identifier(&CALLSITE);
        let mut admit = |server: u64| {
            let kind = LogKind { callsite: callsite.clone(), server: Some(server.to_string()) };
            buckets.admit(kind, start, || server.to_string()) == Admission::Written
        };
        let written = (0..10_000).filter(|server| admit(*server)).count();
        assert_eq!(written, 500);
        assert!(buckets.kinds.len() <= MAX_KINDS + 1);
        let suppressed: u64 = buckets.take_suppressed().iter().map(|(_, count)| count).sum();
        assert_eq!(suppressed, 9_500);
    }

    struct TestCallsite;

    static CALLSITE: TestCallsite = TestCallsite;

    impl tracing::Callsite for TestCallsite {
        fn set_interest(&self, _: tracing::subscriber::Interest) {}

        fn metadata(&self) -> &tracing::Metadata<'_> {
            unreachable!("nothing is logged by it")
        }
    }
}
