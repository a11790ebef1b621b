use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use trunkline_client::protocol::{Era, Revision};
use trunkline_client::transport::Command;
use trunkline_client::transport::process::{ProcessExit, RunLimits, RunOutput, run};

use super::runs::Run;
use crate::leftovers::{MARK, mark};
use crate::options::{At, Options};
use crate::report::{Checked, has, require};

/// Runs the command against the server of the options.
pub(super) struct Driver<'o> {
    pub(super) options: &'o Options,
    binary: PathBuf,
    /// The mark on everything that the command starts.
    pub(super) mark: String,
}

impl<'o> Driver<'o> {
    pub(super) fn new(options: &'o Options) -> Result<Self, String> {
        let binary = options.binary.as_ref().ok_or("--binary is missing")?;
        let binary = binary.canonicalize().map_err(|error| format!("{}: {error}", binary.display()))?;
        Ok(Self { options, binary, mark: mark() })
    }

    /// Reports whether a run is cheap: a server over pipes is started for each, one with an address is there already.
    pub(super) fn is_fast(&self) -> bool {
        matches!(self.options.at, At::Url(_))
    }

    /// Reports whether the server notifies one client of changes by another: a session is notified only of its own.
    pub(super) fn has_other_clients(&self) -> bool {
        self.is_fast() && self.revision().era() == Era::Modern
    }

    /// Returns the expected revision; the name of our own servers has their eras.
    pub(super) fn revision(&self) -> Revision {
        let both = self.options.server.ends_with("-v2");
        self.options.mode.expects(if both { &[Era::Legacy, Era::Modern] } else { &[Era::Legacy] })
    }

    /// Puts a command line together: the name of the command, its target and the mode go where they belong.
    pub(super) fn command(&self, words: &[&str]) -> Checked<Command> {
        let (name, rest) = words.split_first().ok_or("there is no command")?;
        let mut command = Command::new(&self.binary).arg(*name).env(MARK, &self.mark);
        if let At::Url(url) = &self.options.at {
            command = command.arg(url);
        }
        let scratch = self.options.scratch.canonicalize()?;
        for word in rest {
            command = command.arg(word.replace("{scratch}", &scratch.to_string_lossy()));
        }
        match self.options.mode.pin().map(Revision::era) {
            Some(Era::Legacy) => command = command.args(["--era", "legacy"]),
            Some(Era::Modern) => command = command.args(["--era", "modern"]),
            None => {}
        }
        if let At::Command(words) = &self.options.at {
            let memory = scratch.join("memory.jsonl");
            command = command
                .args([format!("--env={MARK}={}", self.mark)])
                .arg(format!("--env=MEMORY_FILE_PATH={}", memory.display()))
                .arg(OsString::from("--"))
                .args(words.iter().cloned());
        }
        Ok(command)
    }

    pub(super) async fn run(&self, words: &[&str]) -> Checked<RunOutput> {
        Ok(run(&self.command(words)?, &limits()).await?)
    }

    /// Runs the command, which must succeed, and reads what it printed as JSON.
    pub(super) async fn json(&self, words: &[&str]) -> Checked<serde_json::Value> {
        let finished = self.run(words).await?;
        require(finished.exit.success(), said(&finished))?;
        Ok(serde_json::from_slice(&finished.stdout.bytes)?)
    }

    /// Makes a run, and looks at what came of it.
    pub(super) async fn expect(&self, expected: &Run) -> Checked {
        let finished = self.run(expected.words).await?;
        require(finished.exit == ProcessExit::Code(expected.exit), said(&finished))?;
        for part in expected.out {
            has(&finished.stdout.text(), part)?;
        }
        for part in expected.err {
            has(&finished.stderr.text(), part)?;
        }
        Ok(())
    }
}

/// A check has a deadline of its own, which is shorter.
pub(super) fn limits() -> RunLimits {
    RunLimits { timeout: Some(Duration::from_secs(60)), ..RunLimits::default() }
}

/// Describes how a run ended.
pub(super) fn said(finished: &RunOutput) -> String {
    format!("it ended with {:?}: {} {}", finished.exit, finished.stdout.text(), finished.stderr.text())
}
