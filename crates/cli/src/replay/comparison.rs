use std::collections::HashMap;

use serde_json::{Value, json};

use super::canonical::IgnoredPaths;
use super::difference::{ValueDifference, differences};
use super::exchange::{RecordedExchange, RecordedOutcome};
use crate::terminal::escape_line;

/// The most characters of a request's parameters that are shown.
const MAX_PARAMS: usize = 120;

/// One call of a comparison.
#[derive(Clone, Debug)]
pub(crate) struct ComparedCall {
    method: String,
    params: Value,
    verdict: CallVerdict,
}

/// What came of comparing a call.
#[derive(Clone, Debug)]
enum CallVerdict {
    Equal,
    Different(Vec<ValueDifference>),
    OnlyBefore,
    OnlyAfter,
    /// It could not be compared, and why.
    Skipped(String),
}

/// The calls of a comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct ComparisonReport {
    calls: Vec<ComparedCall>,
}

impl ComparedCall {
    /// Compares two outcomes of a call.
    pub(crate) fn new(exchange: &RecordedExchange, after: &RecordedOutcome, ignored: &IgnoredPaths) -> Self {
        let verdict = match (&exchange.outcome, after) {
            (RecordedOutcome::Missing(why), _) | (_, RecordedOutcome::Missing(why)) => {
                CallVerdict::Skipped((*why).to_owned())
            }
            (before, after) => match differences(&comparable(before, ignored), &comparable(after, ignored)) {
                found if found.is_empty() => CallVerdict::Equal,
                found => CallVerdict::Different(found),
            },
        };
        Self::with_verdict(exchange, verdict)
    }

    /// Leaves a call out of the comparison.
    pub(crate) fn skipped(exchange: &RecordedExchange, why: impl Into<String>) -> Self {
        Self::with_verdict(exchange, CallVerdict::Skipped(why.into()))
    }

    fn with_verdict(exchange: &RecordedExchange, verdict: CallVerdict) -> Self {
        Self { method: exchange.method.clone(), params: exchange.params.clone(), verdict }
    }

    fn is_different(&self) -> bool {
        !matches!(self.verdict, CallVerdict::Equal | CallVerdict::Skipped(_))
    }

    fn to_json(&self) -> Value {
        let (verdict, differences, reason) = match &self.verdict {
            CallVerdict::Equal => ("equal", None, None),
            CallVerdict::Different(found) => {
                let found: Vec<_> = found.iter().map(ValueDifference::to_json).collect();
                ("different", Some(found), None)
            }
            CallVerdict::OnlyBefore => ("only_before", None, None),
            CallVerdict::OnlyAfter => ("only_after", None, None),
            CallVerdict::Skipped(why) => ("skipped", None, Some(why)),
        };
        json!({
            "method": self.method, "params": self.params, "verdict": verdict,
            "differences": differences, "reason": reason,
        })
    }

    /// Describes a call that is not equal.
    fn describe(&self, names: [&str; 2]) -> String {
        let params: String = self.params.to_string().chars().take(MAX_PARAMS).collect();
        let call = escape_line(&format!("{} {params}", self.method)).into_owned();
        match &self.verdict {
            CallVerdict::Equal => String::new(),
            CallVerdict::Different(found) => {
                let lines = found.iter().map(|found| format!("  {}\n", escape_line(&found.describe())));
                format!("different: {call}\n{}", lines.collect::<String>())
            }
            CallVerdict::OnlyBefore => format!("only in {}: {call}\n", names[0]),
            CallVerdict::OnlyAfter => format!("only in {}: {call}\n", names[1]),
            CallVerdict::Skipped(why) => format!("skipped: {call} ({})\n", escape_line(why)),
        }
    }
}

impl ComparisonReport {
    pub(crate) fn push(&mut self, call: ComparedCall) {
        self.calls.push(call);
    }

    /// Reports whether any call differs.
    pub(crate) fn has_differences(&self) -> bool {
        self.calls.iter().any(ComparedCall::is_different)
    }

    pub(crate) fn to_json(&self) -> Value {
        let calls: Vec<_> = self.calls.iter().map(ComparedCall::to_json).collect();
        json!({ "equal": !self.has_differences(), "calls": calls })
    }

    /// Describes what is not equal, and counts the calls.
    pub(crate) fn describe(&self, names: [&str; 2]) -> String {
        let lines: String = self.calls.iter().map(|call| call.describe(names)).collect();
        let count = |matches: fn(&CallVerdict) -> bool| {
            self.calls.iter().filter(|call| matches(&call.verdict)).count()
        };
        let equal = count(|verdict| matches!(verdict, CallVerdict::Equal));
        let skipped = count(|verdict| matches!(verdict, CallVerdict::Skipped(_)));
        let different = self.calls.len() - equal - skipped;
        format!(
            "{lines}{} calls: {equal} equal, {different} different, {skipped} skipped\n",
            self.calls.len()
        )
    }
}

/// Compares two recordings call by call: requests with the same method and parameters, in their order.
pub(crate) fn compare_recordings(
    before: &[RecordedExchange],
    after: &[RecordedExchange],
    ignored: &IgnoredPaths,
) -> ComparisonReport {
    let key = |exchange: &RecordedExchange| format!("{} {}", exchange.method, exchange.params);
    let mut waiting: HashMap<String, Vec<&RecordedExchange>> = HashMap::new();
    for exchange in after.iter().rev() {
        waiting.entry(key(exchange)).or_default().push(exchange);
    }
    let mut report = ComparisonReport::default();
    for exchange in before.iter().filter(|exchange| is_compared(exchange)) {
        report.push(match waiting.get_mut(&key(exchange)).and_then(Vec::pop) {
            Some(other) => ComparedCall::new(exchange, &other.outcome, ignored),
            None => ComparedCall::with_verdict(exchange, CallVerdict::OnlyBefore),
        });
    }
    let mut left: HashMap<String, usize> = waiting.into_iter().map(|(key, left)| (key, left.len())).collect();
    // The last ones of each key are those that were not matched.
    let mut added = Vec::new();
    for exchange in after.iter().rev().filter(|exchange| is_compared(exchange)) {
        if let Some(count) = left.get_mut(&key(exchange)).filter(|count| **count > 0) {
            *count -= 1;
            added.push(ComparedCall::with_verdict(exchange, CallVerdict::OnlyAfter));
        }
    }
    added.into_iter().rev().for_each(|call| report.push(call));
    report
}

/// Reports whether a request says something about what a server does: not how a connection begins.
pub(super) fn is_compared(exchange: &RecordedExchange) -> bool {
    !matches!(
        &*exchange.method,
        "initialize"
            | "server/discover"
            | "ping"
            | "subscriptions/listen"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "logging/setLevel"
    )
}

fn comparable(outcome: &RecordedOutcome, ignored: &IgnoredPaths) -> Value {
    match outcome {
        RecordedOutcome::Result(result) => {
            let result = serde_json::from_str(result.as_str()).unwrap_or_default();
            json!({ "result": ignored.canonical(&result) })
        }
        RecordedOutcome::Error(error) => json!({ "error": error }),
        RecordedOutcome::Missing(why) => json!({ "missing": why }),
    }
}
