//! Which servers there are and the command line of each.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

/// A server under measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// The physical limit.
    Bare,
    /// Our echo example.
    Ours,
    /// The same server on rmcp.
    Rmcp,
}

impl Kind {
    /// The word for it in tables and files.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Ours => "ours",
            Self::Rmcp => "rmcp",
        }
    }
}

/// Whether the servers' standard error is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerOutput {
    Hidden,
    Shown,
}

/// How a server is started beyond its transport.
#[derive(Debug, Clone, Default)]
pub(crate) struct Launch {
    /// Every handler yields once before it answers. The limit has no handler and ignores it.
    pub(crate) handlers_yield: bool,
    /// Room for this many legacy sessions, where the server has a limit at all.
    pub(crate) max_sessions: Option<usize>,
    /// Idle legacy sessions end after this many seconds.
    pub(crate) session_ttl_seconds: Option<u64>,
    /// Requires access tokens of this issuer; the limit cannot.
    pub(crate) issuer: Option<String>,
    /// A program that runs the server, such as valgrind, with its arguments.
    pub(crate) wrapper: Vec<OsString>,
}

/// A program that is no echo server, with its arguments.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<OsString>,
}

/// The binaries that were found.
#[derive(Debug)]
pub(crate) struct Binaries {
    folder: PathBuf,
    ours: PathBuf,
    output: ServerOutput,
}

impl Binaries {
    /// Looks for the limit and rmcp beside this program, and for our example where the workspace above builds it.
    pub(crate) fn locate(ours: Option<PathBuf>, output: ServerOutput) -> Result<Self> {
        let program = std::env::current_exe().context("find this program's own folder")?;
        let folder = program.parent().context("this program has no folder")?.to_owned();
        let ours = ours.unwrap_or_else(|| default_path_of_ours(&folder));
        Ok(Self { folder, ours, output })
    }

    /// Makes sure that there is something to compare ours with.
    pub(crate) fn require_peers(&self) -> Result<()> {
        ["bare-http", "bare-pipe", "rmcp-echo"].into_iter().try_for_each(|name| self.beside(name).map(drop))
    }

    /// Where another program of this workspace is.
    pub(crate) fn beside(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        ensure!(path.is_file(), "{} is missing: `cargo build --release` in bench/ makes it", path.display());
        Ok(path)
    }

    /// The folder of this workspace's programs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether our example has been built.
    pub(crate) fn have_ours(&self) -> bool {
        self.ours.is_file()
    }

    /// Where our example is, or should be.
    pub(crate) fn ours_path(&self) -> &Path {
        &self.ours
    }

    /// The servers to measure, the limit first.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let mut kinds = vec![Kind::Bare, Kind::Ours, Kind::Rmcp];
        kinds.retain(|kind| *kind != Kind::Ours || self.have_ours());
        kinds
    }

    pub(super) fn http_command(&self, kind: Kind, address: SocketAddr, launch: &Launch) -> Command {
        let address = OsString::from(address.to_string());
        let (program, mut arguments) = match kind {
            Kind::Bare => (self.folder.join("bare-http"), vec![address]),
            Kind::Ours => (self.ours.clone(), vec!["--http".into(), address]),
            Kind::Rmcp => (self.folder.join("rmcp-echo"), vec!["--http".into(), address]),
        };
        arguments.extend(options(kind, launch));
        self.command(program, arguments, launch)
    }

    pub(super) fn stdio_command(&self, kind: Kind, launch: &Launch) -> Command {
        let (program, mut arguments) = match kind {
            Kind::Bare => (self.folder.join("bare-pipe"), Vec::new()),
            Kind::Ours => (self.ours.clone(), vec!["--stdio".into()]),
            Kind::Rmcp => (self.folder.join("rmcp-echo"), vec!["--stdio".into()]),
        };
        arguments.extend(options(kind, launch));
        self.command(program, arguments, launch)
    }

    pub(super) fn command_of(&self, program: &Program) -> Command {
        self.command(program.path.clone(), program.arguments.clone(), &Launch::default())
    }

    fn command(&self, program: PathBuf, arguments: Vec<OsString>, launch: &Launch) -> Command {
        let mut words = launch.wrapper.clone();
        words.push(program.into());
        words.extend(arguments);
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(match self.output {
            ServerOutput::Hidden => Stdio::null(),
            ServerOutput::Shown => Stdio::inherit(),
        });
        command
    }
}

/// The options that a server understands; rmcp has no limit on sessions, the limit has no sessions.
fn options(kind: Kind, launch: &Launch) -> Vec<OsString> {
    let mut options = Vec::new();
    if kind == Kind::Bare {
        return options;
    }
    if launch.handlers_yield {
        options.push("--yield".into());
    }
    if let Some(seconds) = launch.session_ttl_seconds {
        options.extend(["--session-ttl".into(), seconds.to_string().into()]);
    }
    if let (Kind::Ours, Some(sessions)) = (kind, launch.max_sessions) {
        options.extend(["--max-sessions".into(), sessions.to_string().into()]);
    }
    if let Some(issuer) = &launch.issuer {
        options.extend(["--issuer".into(), issuer.into()]);
    }
    options
}

/// `bench/target/release/` is three folders below the workspace of the toolkit.
fn default_path_of_ours(folder: &Path) -> PathBuf {
    let root = folder.ancestors().nth(3).unwrap_or(folder);
    root.join("target/release/examples/echo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_gets_only_the_options_it_has() {
        let launch = Launch {
            handlers_yield: true,
            max_sessions: Some(5),
            session_ttl_seconds: Some(9),
            issuer: Some("http://127.0.0.1:1".to_owned()),
            wrapper: Vec::new(),
        };
        let told = |kind| options(kind, &launch).join(" ".as_ref()).into_string().unwrap();
        assert_eq!(told(Kind::Bare), "");
        let issuer = "--issuer http://127.0.0.1:1";
        assert_eq!(told(Kind::Rmcp), format!("--yield --session-ttl 9 {issuer}"));
        assert_eq!(told(Kind::Ours), format!("--yield --session-ttl 9 --max-sessions 5 {issuer}"));
    }

    #[test]
    fn our_example_is_looked_for_in_the_workspace_above() {
        let path = default_path_of_ours(Path::new("/repo/bench/target/release"));
        assert_eq!(path, Path::new("/repo/target/release/examples/echo"));
    }
}
