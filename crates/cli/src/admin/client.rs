//! The side of whoever wants something of a hub.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::place;
use super::protocol::{Answer, Applied, Problem, ProblemKind, Report, Request, ServerState};
use crate::exit::{Exit, Failure};

/// A hub that runs. Each request is a connection of its own.
#[derive(Clone, Debug)]
pub(crate) struct Hub {
    socket: PathBuf,
}

/// Why a hub did not do something.
#[derive(Debug)]
pub(crate) enum AdminError {
    /// It is not there, or does not speak as it should.
    Gone(PathBuf, io::Error),
    /// It says why.
    Refused(Problem),
}

impl Hub {
    /// Finds the hub of a configuration file, if one runs.
    ///
    /// # Errors
    /// Something is there, and does not answer as a hub does.
    pub(crate) fn find(config: &Path) -> Result<Option<Self>, AdminError> {
        match place::of_config(config).filter(|_| cfg!(unix)) {
            Some(socket) => Self::at(&socket),
            None => Ok(None),
        }
    }

    /// Finds the hub that listens at a path, if one does.
    ///
    /// # Errors
    /// Something is there, and does not answer as a hub does.
    pub(crate) fn at(socket: &Path) -> Result<Option<Self>, AdminError> {
        let hub = Self { socket: socket.to_owned() };
        match hub.report() {
            Ok(_) => Ok(Some(hub)),
            Err(AdminError::Gone(_, error)) if is_nobody(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Tells about the hub and its servers.
    pub(crate) fn report(&self) -> Result<Report, AdminError> {
        match self.ask(&Request::Status)? {
            Answer::Status(report) => Ok(report),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Tells how the servers stand, in the order of the configuration.
    pub(crate) fn status(&self) -> Result<Vec<ServerState>, AdminError> {
        self.report().map(|report| report.servers)
    }

    /// Switches what a server has on or off, and reports whether it was the other way before.
    pub(crate) fn toggle(&self, server: &str, on: bool) -> Result<bool, AdminError> {
        let server = server.to_owned();
        let request = if on { Request::Enable { server } } else { Request::Disable { server } };
        match self.ask(&request)? {
            Answer::Switched(changed) => Ok(changed),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Ends every connection to a server and connects anew.
    pub(crate) fn reconnect(&self, server: &str) -> Result<(), AdminError> {
        self.done(&Request::Reconnect { server: server.to_owned() })
    }

    /// Reads the configuration again.
    pub(crate) fn reload(&self) -> Result<Applied, AdminError> {
        match self.ask(&Request::Reload)? {
            Answer::Applied(applied) => Ok(applied),
            other => Err(self.unexpected(&other)),
        }
    }

    fn done(&self, request: &Request) -> Result<(), AdminError> {
        match self.ask(request)? {
            Answer::Done => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    fn ask(&self, request: &Request) -> Result<Answer, AdminError> {
        match self.exchange(request).map_err(|error| self.gone(error))? {
            Answer::Failed(problem) => Err(AdminError::Refused(problem)),
            answer => Ok(answer),
        }
    }

    fn gone(&self, error: io::Error) -> AdminError {
        AdminError::Gone(self.socket.clone(), error)
    }

    fn unexpected(&self, answer: &Answer) -> AdminError {
        self.gone(io::Error::other(format!("it answered something else: {answer:?}")))
    }

    #[cfg(unix)]
    fn exchange(&self, request: &Request) -> io::Result<Answer> {
        use std::io::{BufRead as _, BufReader, Read as _, Write as _};
        use std::os::unix::net::UnixStream;
        use std::time::Duration;

        use super::protocol::LONGEST_ANSWER;

        // Starting a server may take minutes; nobody waits longer than this for one that never says anything.
        const LONGEST_WAIT: Duration = Duration::from_secs(300);
        // How things stand is known at once.
        const LONGEST_WAIT_FOR_STATUS: Duration = Duration::from_secs(10);
        let wait = if matches!(request, Request::Status) { LONGEST_WAIT_FOR_STATUS } else { LONGEST_WAIT };
        check_owner(&self.socket)?;
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(wait))?;
        stream.set_write_timeout(Some(wait))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let most = u64::try_from(LONGEST_ANSWER).unwrap_or(u64::MAX);
        let mut answer = Vec::new();
        let read = BufReader::new(stream).take(most).read_until(b'\n', &mut answer);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                io::Error::new(io::ErrorKind::TimedOut, format!("it did not answer within {wait:?}"))
            }
            _ => error,
        })?;
        if answer.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it closed the connection without an answer",
            ));
        }
        Ok(serde_json::from_slice(&answer)?)
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "on Unix it asks at a socket of its own")]
    fn exchange(&self, _: &Request) -> io::Result<Answer> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a running hub can be reached only on Unix; edit its file, which it reads again",
        ))
    }
}

/// Reports whether an error means that nobody listens.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Refuses a socket that somebody else put there.
#[cfg(unix)]
fn check_owner(socket: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let owner = std::fs::symlink_metadata(socket)?.uid();
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("it belongs to another user (id {owner})")))
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(socket, error) => {
                write!(f, "the hub at {} cannot be asked: {error}", socket.display())
            }
            Self::Refused(problem) => f.write_str(&problem.what),
        }
    }
}

impl std::error::Error for AdminError {}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        let exit = match &error {
            AdminError::Gone(..) => Exit::Unreachable,
            AdminError::Refused(problem) => match problem.kind {
                ProblemKind::NoSuchServer | ProblemKind::Configuration => Exit::Configuration,
                ProblemKind::Unavailable => Exit::Unreachable,
                ProblemKind::Request => Exit::Failed,
            },
        };
        Self::new(exit, error)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_who_is_not_there_counts_as_nobody() {
        let folder = std::env::temp_dir().join(format!("trunkline-hubs-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let socket = folder.join("hub.sock");
        assert!(matches!(Hub::at(&socket), Ok(None)), "there is nothing");
        let listener = UnixListener::bind(&socket).unwrap();
        let answering = std::thread::spawn(move || {
            for answer in ["", "nonsense\n"] {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 100]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let silent = Hub::at(&socket).unwrap_err().to_string();
        assert!(silent.contains("closed the connection without an answer"), "{silent}");
        assert!(matches!(Hub::at(&socket), Err(AdminError::Gone(..))), "it says nonsense");
        answering.join().unwrap();
        assert!(matches!(Hub::at(&socket), Ok(None)), "it was left behind");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
