//! The client side of the admin socket.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::protocol::{
    AdminFailure, AdminFailureKind, AdminRequest, AdminResponse, HubReport, ReloadSummary, ServerState,
    SessionReport,
};
use super::socket_path;
use crate::exit::{CliFailure, ExitReason};

/// A hub that runs. Each request is a connection of its own.
#[derive(Clone, Debug)]
pub(crate) struct AdminClient {
    socket: PathBuf,
}

/// The events of a hub, as lines of JSON.
#[cfg(unix)]
pub(crate) type EventLines = tokio::io::BufReader<tokio::net::UnixStream>;

/// Why a hub did not do something.
#[derive(Debug)]
pub(crate) enum AdminError {
    /// The hub is not running, or its response is malformed.
    Unreachable(PathBuf, io::Error),
    /// The hub returned an error.
    Refused(AdminFailure),
}

impl AdminClient {
    /// Finds the hub of a configuration file, if one runs.
    ///
    /// # Errors
    /// A process listens, but does not respond as a hub does.
    pub(crate) fn find(config: &Path) -> Result<Option<Self>, AdminError> {
        match socket_path::admin_socket_path(config).filter(|_| cfg!(unix)) {
            Some(socket) => Self::find_at(&socket),
            None => Ok(None),
        }
    }

    /// Finds the hub that listens at a path, if one does.
    ///
    /// # Errors
    /// A process listens, but does not respond as a hub does.
    pub(crate) fn find_at(socket: &Path) -> Result<Option<Self>, AdminError> {
        let hub = Self { socket: socket.to_owned() };
        match hub.report() {
            Ok(_) => Ok(Some(hub)),
            Err(AdminError::Unreachable(_, error)) if is_not_listening(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Requests the status of the hub and its servers.
    pub(crate) fn report(&self) -> Result<HubReport, AdminError> {
        match self.request(&AdminRequest::Status)? {
            AdminResponse::Status(report) => Ok(report),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Requests the status of the servers, in the order of the configuration.
    pub(crate) fn status(&self) -> Result<Vec<ServerState>, AdminError> {
        self.report().map(|report| report.servers)
    }

    /// Switches what a server has on or off, and reports whether it was the other way before.
    pub(crate) fn set_enabled(&self, server: &str, on: bool) -> Result<bool, AdminError> {
        let server = server.to_owned();
        let request = if on { AdminRequest::Enable { server } } else { AdminRequest::Disable { server } };
        match self.request(&request)? {
            AdminResponse::Switched(changed) => Ok(changed),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Closes every connection to a server and reconnects.
    pub(crate) fn reconnect(&self, server: &str) -> Result<(), AdminError> {
        self.expect_done(&AdminRequest::Reconnect { server: server.to_owned() })
    }

    /// Requests the legacy sessions.
    pub(crate) fn sessions(&self) -> Result<SessionReport, AdminError> {
        match self.request(&AdminRequest::Sessions)? {
            AdminResponse::Sessions(report) => Ok(report),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Ends the session with an id that begins like this.
    pub(crate) fn end_session(&self, session: &str) -> Result<(), AdminError> {
        self.expect_done(&AdminRequest::EndSession { session: session.to_owned() })
    }

    /// Makes a link at which the user of this machine logs in to a server.
    pub(crate) fn login_link(&self, server: &str) -> Result<String, AdminError> {
        match self.request(&AdminRequest::Login { server: server.to_owned() })? {
            AdminResponse::LoginLink(link) => Ok(link),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Makes a link that opens the web console once.
    pub(crate) fn console_link(&self, read_only: bool) -> Result<String, AdminError> {
        match self.request(&AdminRequest::ConsoleLink { read_only })? {
            AdminResponse::ConsoleLink(link) => Ok(link),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Waits until the login at a link is complete.
    pub(crate) fn await_login(&self, link: &str) -> Result<(), AdminError> {
        self.expect_done(&AdminRequest::AwaitLogin { link: link.to_owned() })
    }

    /// Lets the hub use the tokens that are stored for a server now.
    pub(crate) fn reload_tokens(&self, server: &str) -> Result<(), AdminError> {
        self.expect_done(&AdminRequest::ReloadTokens { server: server.to_owned() })
    }

    /// Removes the stored tokens of a user, and returns how many logins there were.
    pub(crate) fn revoke_user(&self, user: &str, server: Option<&str>) -> Result<usize, AdminError> {
        let request = AdminRequest::RevokeUser { user: user.to_owned(), server: server.map(str::to_owned) };
        match self.request(&request)? {
            AdminResponse::Revoked(count) => Ok(count),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Reads the configuration again.
    pub(crate) fn reload(&self) -> Result<ReloadSummary, AdminError> {
        match self.request(&AdminRequest::Reload)? {
            AdminResponse::Applied(applied) => Ok(applied),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Subscribes to all events of the hub, which follow as lines of JSON.
    #[cfg(unix)]
    pub(crate) async fn events(&self) -> Result<EventLines, AdminError> {
        self.stream(&AdminRequest::Events { messages: true }).await
    }

    /// Subscribes to the events of the hub without messages.
    #[cfg(unix)]
    pub(crate) async fn call_events(&self) -> Result<EventLines, AdminError> {
        self.stream(&AdminRequest::Events { messages: false }).await
    }

    #[cfg(unix)]
    async fn stream(&self, request: &AdminRequest) -> Result<EventLines, AdminError> {
        use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

        let unreachable = |error| self.unreachable(error);
        check_owner(&self.socket).map_err(unreachable)?;
        let mut stream = tokio::net::UnixStream::connect(&self.socket).await.map_err(unreachable)?;
        let mut request = serde_json::to_vec(request).map_err(|error| unreachable(error.into()))?;
        request.push(b'\n');
        stream.write_all(&request).await.map_err(unreachable)?;
        let mut lines = BufReader::new(stream);
        let mut answer = String::new();
        lines.read_line(&mut answer).await.map_err(unreachable)?;
        match serde_json::from_str(&answer).map_err(|error| unreachable(error.into()))? {
            AdminResponse::Done => Ok(lines),
            AdminResponse::Failed(problem) => Err(AdminError::Refused(problem)),
            other => Err(self.unexpected(&other)),
        }
    }

    fn expect_done(&self, request: &AdminRequest) -> Result<(), AdminError> {
        match self.request(request)? {
            AdminResponse::Done => Ok(()),
            other => Err(self.unexpected(&other)),
        }
    }

    fn request(&self, request: &AdminRequest) -> Result<AdminResponse, AdminError> {
        match self.exchange(request).map_err(|error| self.unreachable(error))? {
            AdminResponse::Failed(problem) => Err(AdminError::Refused(problem)),
            answer => Ok(answer),
        }
    }

    fn unreachable(&self, error: io::Error) -> AdminError {
        AdminError::Unreachable(self.socket.clone(), error)
    }

    fn unexpected(&self, answer: &AdminResponse) -> AdminError {
        self.unreachable(io::Error::other(format!("unexpected response: {answer:?}")))
    }

    #[cfg(unix)]
    fn exchange(&self, request: &AdminRequest) -> io::Result<AdminResponse> {
        use std::io::{BufRead as _, BufReader, Read as _, Write as _};
        use std::os::unix::net::UnixStream;
        use std::time::Duration;

        use super::protocol::MAX_RESPONSE_BYTES;

        // Starting a server may take minutes; this is the deadline for one that never responds.
        const RESPONSE_TIMEOUT: Duration = Duration::from_secs(300);
        // The status is available at once.
        const STATUS_TIMEOUT: Duration = Duration::from_secs(10);
        // Longer than a link is valid.
        const LOGIN_TIMEOUT: Duration = Duration::from_secs(11 * 60);
        let wait = match request {
            AdminRequest::Status => STATUS_TIMEOUT,
            AdminRequest::AwaitLogin { .. } => LOGIN_TIMEOUT,
            _ => RESPONSE_TIMEOUT,
        };
        check_owner(&self.socket)?;
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(wait))?;
        stream.set_write_timeout(Some(wait))?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line)?;
        let most = u64::try_from(MAX_RESPONSE_BYTES).unwrap_or(u64::MAX);
        let mut answer = Vec::new();
        let read = BufReader::new(stream).take(most).read_until(b'\n', &mut answer);
        read.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                io::Error::new(io::ErrorKind::TimedOut, format!("no response within {wait:?}"))
            }
            _ => error,
        })?;
        if answer.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "it closed the connection without a response",
            ));
        }
        Ok(serde_json::from_slice(&answer)?)
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, reason = "on Unix it asks at a socket of its own")]
    fn exchange(&self, _: &AdminRequest) -> io::Result<AdminResponse> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a running hub can be managed only on Unix; edit its config file instead, which it reloads",
        ))
    }
}

/// Reports whether an error means that no process listens.
fn is_not_listening(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Rejects a socket that belongs to another user.
#[cfg(unix)]
fn check_owner(socket: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let owner = std::fs::symlink_metadata(socket)?.uid();
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("the socket belongs to another user (id {owner})"),
    ))
}

impl fmt::Display for AdminError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(socket, error) => {
                write!(f, "cannot talk to the hub at {}: {error}", socket.display())
            }
            Self::Refused(problem) => f.write_str(&problem.what),
        }
    }
}

impl std::error::Error for AdminError {}

impl From<AdminError> for CliFailure {
    fn from(error: AdminError) -> Self {
        let exit = match &error {
            AdminError::Unreachable(..) => ExitReason::Unreachable,
            AdminError::Refused(problem) => match problem.kind {
                AdminFailureKind::NoSuchServer
                | AdminFailureKind::NoSuchSession
                | AdminFailureKind::Configuration => ExitReason::Configuration,
                AdminFailureKind::Unavailable => ExitReason::Unreachable,
                AdminFailureKind::Login => ExitReason::Unauthorized,
                AdminFailureKind::Request | AdminFailureKind::Console => ExitReason::Failed,
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
    fn only_a_missing_listener_counts_as_no_hub() {
        let folder = std::env::temp_dir().join(format!("trunkline-hubs-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let socket = folder.join("hub.sock");
        assert!(matches!(AdminClient::find_at(&socket), Ok(None)), "there is nothing");
        let listener = UnixListener::bind(&socket).unwrap();
        let answering = std::thread::spawn(move || {
            for answer in ["", "nonsense\n"] {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 100]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let silent = AdminClient::find_at(&socket).unwrap_err().to_string();
        assert!(silent.contains("closed the connection without a response"), "{silent}");
        assert!(
            matches!(AdminClient::find_at(&socket), Err(AdminError::Unreachable(..))),
            "it says nonsense"
        );
        answering.join().unwrap();
        assert!(matches!(AdminClient::find_at(&socket), Ok(None)), "it was left behind");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
