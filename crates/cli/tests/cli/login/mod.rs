//! Logging in to remote servers, and using the logins.

mod commands;
mod doctor;
mod failures;
mod hub;
mod oauth_server;
#[cfg(target_os = "linux")]
mod terminal;

use std::path::{Path, PathBuf};

use self::oauth_server::OauthServer;
use crate::process::{FinishedCommand, RunningCommand, folder};

/// A server that requires a login, and a user with a home folder.
struct LoginSetup {
    server: OauthServer,
    home: PathBuf,
    _backend: RunningCommand,
}

impl LoginSetup {
    fn new(test: &str) -> Self {
        let (backend, address) = RunningCommand::serve(&format!("{test}_backend"), &["--no-config"]);
        Self { server: OauthServer::start(address), home: folder(test), _backend: backend }
    }

    /// Returns a setup with a login.
    fn logged_in(test: &str) -> Self {
        let setup = Self::new(test);
        let finished = setup.log_in(&[]);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        setup
    }

    #[track_caller]
    fn start(&self, args: &[&str]) -> RunningCommand {
        RunningCommand::start_at_home(args, &self.home, &[])
    }

    /// Runs a command as a script does: without a terminal and without input.
    #[track_caller]
    fn run(&self, args: &[&str]) -> FinishedCommand {
        self.start(args).finish()
    }

    /// Logs in by `--no-browser`: the test opens the page, and pastes where the browser is sent.
    #[track_caller]
    fn log_in(&self, options: &[&str]) -> FinishedCommand {
        let url = self.server.url();
        let mut login = self.start(&[&["login", &url, "--no-browser"], options].concat());
        let page = login.wait_for("/authorize?");
        let redirect = self.server.agree(&page);
        login.write(&format!("{redirect}\n"));
        login.finish()
    }

    fn store(&self) -> PathBuf {
        self.home.join(".local/state/trunkline/logins/tokens.json")
    }
}

/// Fails if an output has a token, a code or a secret.
#[track_caller]
fn assert_no_secret(finished: &FinishedCommand, store: &Path) {
    let stored = std::fs::read_to_string(store).unwrap_or_default();
    let tokens = stored.split('"').filter(|text| text.contains("secret-") || text.contains(".c2lnbmF0dXJl"));
    for secret in tokens.chain(["secret-"]) {
        let printed = format!("{}{}", finished.stdout, finished.stderr);
        assert!(!printed.contains(secret), "{secret} in {finished:?}");
    }
}
