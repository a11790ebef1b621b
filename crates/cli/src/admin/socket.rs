//! The side of the hub: a socket in a folder of its user's own, for that user alone.

use std::convert::Infallible;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::protocol::{Answer, LONGEST_REQUEST, Problem, ProblemKind, Request};

/// The most connections at one time; others wait until one of these is closed.
const MOST_CONNECTIONS: usize = 16;

/// How long a connection may stay without saying anything.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// How long is waited after a connection that could not be accepted.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// A socket that somebody listens on. It is taken away when this is dropped.
#[derive(Debug)]
pub(crate) struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Which file it is, since another hub may have put its own there.
    identity: (u64, u64),
}

impl AdminSocket {
    /// Listens at a path in a folder that is made if it is not there, and that has to be the user's own.
    ///
    /// # Errors
    /// The folder is somebody else's, another hub listens there, or the operating system refuses.
    pub(crate) fn in_own_folder(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let found = std::fs::symlink_metadata(folder)?;
            let ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
            if !ours || found.mode() & 0o077 != 0 {
                let what = format!("{} has to be a folder that only you can use", folder.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
            }
        }
        Self::at(path)
    }

    /// Listens at a path.
    ///
    /// # Errors
    /// Another hub listens there, or the operating system refuses.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        if BlockingStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another hub listens there"));
        }
        // It gets its mode before it gets its name, so that nobody else can ever connect to it.
        let fresh = path.with_extension(std::process::id().to_string());
        let _ = std::fs::remove_file(&fresh);
        let listener = UnixListener::bind(&fresh)?;
        let placed = || -> io::Result<(u64, u64)> {
            std::fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
            let found = std::fs::symlink_metadata(&fresh)?;
            std::fs::rename(&fresh, path)?;
            Ok((found.dev(), found.ino()))
        };
        match placed() {
            Ok(identity) => Ok(Self { listener, path: path.to_owned(), identity }),
            Err(error) => {
                let _ = std::fs::remove_file(&fresh);
                Err(error)
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Answers whoever asks. It never returns.
    pub(crate) async fn serve<F>(&self, answer: impl Fn(Request) -> F + Clone + Send + 'static) -> Infallible
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            while connections.len() >= MOST_CONNECTIONS {
                connections.join_next().await;
            }
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if is_own(&stream) => {
                        connections.spawn(converse(stream, answer.clone()));
                    }
                    Ok(_) => tracing::warn!("another user tried to manage this hub, and was refused"),
                    Err(error) => {
                        tracing::warn!(%error, "a connection to the admin socket failed");
                        tokio::time::sleep(AFTER_FAILURE).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        self.take_away();
    }
}

impl AdminSocket {
    /// Takes its name away, unless that is another's by now. Nobody finds it from then on.
    pub(crate) fn take_away(&self) {
        let found = std::fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Reports whether whoever connected is the user whose hub this is, or the superuser.
fn is_own(stream: &UnixStream) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == ours || peer.uid() == 0)
}

/// Answers one request after the other until there is no other.
async fn converse<F>(stream: UnixStream, answer: impl Fn(Request) -> F)
where
    F: Future<Output = Answer>,
{
    let (reading, mut writing) = stream.into_split();
    let mut reader = BufReader::new(reading);
    loop {
        let mut line = Vec::new();
        let most = u64::try_from(LONGEST_REQUEST).unwrap_or(u64::MAX);
        let mut limited = (&mut reader).take(most);
        let read = timeout(LONGEST_SILENCE, limited.read_until(b'\n', &mut line)).await;
        let Ok(Ok(1..)) = read else { return };
        let is_whole = line.ends_with(b"\n");
        let answered = match serde_json::from_slice(&line) {
            Ok(request) if is_whole => answer(request).await,
            Ok(_) | Err(_) => {
                let what = "the request is not one that this hub knows".to_owned();
                Answer::Failed(Problem { kind: ProblemKind::Request, what })
            }
        };
        let Ok(mut written) = serde_json::to_vec(&answered) else { return };
        written.push(b'\n');
        // What is left of a line that is too long would be taken for the next one.
        let wrote = timeout(LONGEST_SILENCE, writing.write_all(&written)).await;
        if !is_whole || !matches!(wrote, Ok(Ok(()))) {
            return;
        }
    }
}
