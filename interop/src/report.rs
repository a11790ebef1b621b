use std::error::Error;
use std::fmt::{Debug, Display};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

/// A check that takes longer than this has hung; a healthy server needs well under a second for each.
const CHECK_LIMIT: Duration = Duration::from_secs(60);

/// The result of a check.
pub(crate) type Checked<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Counts the passed and the failed checks, and prints a line for each.
#[derive(Debug, Default)]
pub(crate) struct Report {
    passed: usize,
    failed: usize,
}

impl Report {
    /// Runs one check; its failure is reported and does not stop the checks after it.
    pub(crate) async fn check<T>(
        &mut self,
        name: &str,
        check: impl Future<Output = Checked<T>>,
    ) -> Option<T> {
        let outcome = tokio::time::timeout(CHECK_LIMIT, check)
            .await
            .unwrap_or_else(|_| Err(format!("it did not end within {CHECK_LIMIT:?}").into()));
        match outcome {
            Ok(value) => {
                self.passed += 1;
                println!("ok {name}");
                Some(value)
            }
            Err(problem) => {
                self.failed += 1;
                let problem = problem.to_string();
                println!("not ok {name}: {}", problem.split_whitespace().collect::<Vec<_>>().join(" "));
                None
            }
        }
    }

    /// Prints the counts, and returns the exit code.
    pub(crate) fn close(&self) -> ExitCode {
        println!("{} passed, {} failed", self.passed, self.failed);
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Fails a check unless a condition holds.
pub(crate) fn require(holds: bool, otherwise: impl Display) -> Checked {
    if holds { Ok(()) } else { Err(otherwise.to_string().into()) }
}

/// Fails a check unless something is what it should be.
#[expect(clippy::needless_pass_by_value, reason = "checks read better without a reference on either side")]
pub(crate) fn same<A: PartialEq<B> + Debug, B: Debug>(found: A, expected: B) -> Checked {
    require(found == expected, format_args!("found {found:?} and not {expected:?}"))
}

/// Returns what is at a place within a value; nothing is null.
pub(crate) fn at<'v>(value: &'v Value, place: &str) -> &'v Value {
    value.pointer(place).unwrap_or(&Value::Null)
}

/// Fails a check unless a text has a part.
pub(crate) fn has(text: &str, part: &str) -> Checked {
    require(text.contains(part), format_args!("`{part}` is not in `{text}`"))
}
