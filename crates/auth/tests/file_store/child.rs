//! Other processes: this test program runs itself for one test.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Names the store to a child process. Without it the tests that are child processes do nothing.
const STORE_VARIABLE: &str = "TRUNKLINE_TEST_STORE";

/// Starts the child process that a test function is.
#[expect(clippy::disallowed_methods, reason = "the process is killed and its output is read here")]
pub(crate) fn start(test: &str, store: &Path, variables: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(STORE_VARIABLE, store)
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns the store of a child process; `None` in the ordinary run.
pub(crate) fn store_path() -> Option<std::path::PathBuf> {
    std::env::var_os(STORE_VARIABLE).map(std::path::PathBuf::from)
}
