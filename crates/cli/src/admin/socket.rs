//! The side of the hub: a socket in a folder of its user's own, for that user alone.

use std::convert::Infallible;
use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use trunkline_hub::events::{EventSubscription, EventViewer, HubEvents};

use super::protocol::{AdminFailure, AdminFailureKind, AdminRequest, AdminResponse, MAX_REQUEST_BYTES};

/// The maximum number of concurrent connections; others wait until one of these is closed.
const MAX_CONNECTIONS: usize = 16;

/// The bytes after which events are written.
const MAX_EVENT_BATCH: usize = 64 * 1024;

/// The idle timeout of a connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long is waited after a connection that could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// How long is waited at most until others that start have taken their names, and how often is looked.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A listening socket. Its path is removed on drop.
#[derive(Debug)]
pub(crate) struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Which file it is, since another hub may have put its own there.
    file_id: (u64, u64),
}

impl AdminSocket {
    /// Listens at a path in a folder that is made if it is not there, and that has to be the user's own.
    ///
    /// # Errors
    /// The folder belongs to another user, another hub already listens there, or the operating system refuses.
    pub(crate) fn bind_in_own_folder(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let found = std::fs::symlink_metadata(folder)?;
            let ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
            if !ours || found.mode() & 0o077 != 0 {
                let what = format!("{} must be a folder that only you can access", folder.display());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
            }
        }
        Self::bind(path)
    }

    /// Listens at a path.
    ///
    /// # Errors
    /// Another hub listens there, the path is another kind of file, or the operating system refuses.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        // The socket gets its mode before its final name, so that no other user can ever connect to it.
        let fresh = path.with_extension(std::process::id().to_string());
        if is_socket(&fresh)? {
            std::fs::remove_file(&fresh)?;
        }
        let listener = UnixListener::bind(&fresh)?;
        let placed = || -> io::Result<(u64, u64)> {
            std::fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
            let found = std::fs::symlink_metadata(&fresh)?;
            claim_path(&fresh, path)?;
            Ok((found.dev(), found.ino()))
        };
        let placed = placed();
        let _ = std::fs::remove_file(&fresh);
        placed.map(|identity| Self { listener, path: path.to_owned(), file_id: identity })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Serves connections. It never returns.
    pub(crate) async fn serve<F>(
        &self,
        events: Option<HubEvents>,
        answer: impl Fn(AdminRequest) -> F + Clone + Send + 'static,
    ) -> Infallible
    where
        F: Future<Output = AdminResponse> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            while connections.len() >= MAX_CONNECTIONS {
                connections.join_next().await;
            }
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) if is_same_user(&stream) => {
                        connections.spawn(serve_connection(stream, events.clone(), answer.clone()));
                    }
                    Ok(_) => tracing::warn!("rejected an admin connection from another user"),
                    Err(error) => {
                        tracing::warn!(%error, "admin socket connection failed");
                        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        self.unlink();
    }
}

impl AdminSocket {
    /// Removes the path, unless it is another socket's by now. New clients no longer find it.
    pub(crate) fn unlink(&self) {
        let found = std::fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.file_id) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Moves a socket to a free path. Only a stale socket, without a listener, is replaced.
///
/// Hubs that start together agree by a lock on the folder: between looking at a name and taking it, no other does.
fn claim_path(fresh: &Path, name: &Path) -> io::Result<()> {
    let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = File::open(folder)?;
    lock(&folder)?;
    if is_socket(name)? {
        match BlockingStream::connect(name) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(name)?,
            Err(error) => return Err(error),
            Ok(_) => {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another hub already listens there"));
            }
        }
    }
    // Unlike a new name, a link never takes the place of something.
    std::fs::hard_link(fresh, name)
}

/// Locks a folder, and does not wait for ever: others may be able to lock it too.
fn lock(folder: &File) -> io::Result<()> {
    let latest = Instant::now() + LOCK_TIMEOUT;
    loop {
        match flock(folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < latest => std::thread::sleep(LOCK_POLL_INTERVAL),
            Err(Errno::WOULDBLOCK) => {
                return Err(io::Error::new(
                    io::ErrorKind::WouldBlock,
                    "another program has locked its folder",
                ));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reports whether a socket is at a path.
///
/// # Errors
/// Another kind of file exists there, or the path cannot be examined.
fn is_socket(path: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => Ok(true),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} exists and is not a socket", path.display()),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reports whether the peer is the user of this hub, or the superuser.
fn is_same_user(stream: &UnixStream) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == ours || peer.uid() == 0)
}

/// Handles requests in sequence until the connection ends.
async fn serve_connection<F>(
    stream: UnixStream,
    events: Option<HubEvents>,
    answer: impl Fn(AdminRequest) -> F,
) where
    F: Future<Output = AdminResponse>,
{
    let (reading, mut writing) = stream.into_split();
    let mut reader = BufReader::new(reading);
    loop {
        let mut line = Vec::new();
        let most = u64::try_from(MAX_REQUEST_BYTES).unwrap_or(u64::MAX);
        let mut limited = (&mut reader).take(most);
        let read = timeout(IDLE_TIMEOUT, limited.read_until(b'\n', &mut line)).await;
        let Ok(Ok(1..)) = read else { return };
        let is_whole = line.ends_with(b"\n");
        let answered = match serde_json::from_slice(&line) {
            Ok(AdminRequest::Events { messages }) if is_whole && events.is_some() => {
                if let Some(events) = &events {
                    stream_events(subscribe(events, messages), &mut reader, writing).await;
                }
                return;
            }
            Ok(request) if is_whole => {
                // A client that has gone, such as a cancelled login, must not keep its place until the login ends.
                let is_wait = matches!(request, AdminRequest::AwaitLogin { .. });
                tokio::select! {
                    answered = answer(request) => answered,
                    () = closed(&mut reader), if is_wait => return,
                }
            }
            Ok(_) | Err(_) => {
                let what = "unknown admin request".to_owned();
                AdminResponse::Failed(AdminFailure { kind: AdminFailureKind::Request, what })
            }
        };
        let Ok(mut written) = serde_json::to_vec(&answered) else { return };
        written.push(b'\n');
        // The rest of an oversized line would be parsed as the next request.
        let wrote = timeout(IDLE_TIMEOUT, writing.write_all(&written)).await;
        if !is_whole || !matches!(wrote, Ok(Ok(()))) {
            return;
        }
    }
}

fn subscribe(events: &HubEvents, messages: bool) -> EventSubscription {
    match messages {
        true => events.subscribe(EventViewer::Operator, None),
        false => events.subscribe_without_messages(EventViewer::Operator, None),
    }
}

/// Streams events until the client closes the connection or does not read.
async fn stream_events(
    mut subscription: EventSubscription,
    reader: &mut BufReader<OwnedReadHalf>,
    mut writing: OwnedWriteHalf,
) {
    let mut written = b"\"done\"\n".to_vec();
    loop {
        if !matches!(timeout(IDLE_TIMEOUT, writing.write_all(&written)).await, Ok(Ok(()))) {
            return;
        }
        written.clear();
        let first = tokio::select! {
            event = subscription.next_event() => event,
            () = closed(reader) => return,
        };
        let mut next = Some(first);
        while let Some(event) = next {
            written.extend_from_slice(event.to_line().as_bytes());
            written.push(b'\n');
            next = if written.len() < MAX_EVENT_BATCH { subscription.try_next() } else { None };
        }
    }
}

/// Waits until the client closes the connection, or its sending side.
async fn closed(reader: &mut BufReader<OwnedReadHalf>) {
    if let Ok([_, ..]) = reader.fill_buf().await {
        // It is the next request, and the client waits for its response.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    /// Makes a folder of this test's own.
    fn folder(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("trunkline-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    #[tokio::test]
    async fn non_socket_file_is_not_replaced() {
        let folder = folder("socket-other");
        let (file, link) = (folder.join("notes.txt"), folder.join("link"));
        std::fs::write(&file, "precious").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for path in [&file, &link, &folder] {
            assert_eq!(AdminSocket::bind(path).unwrap_err().kind(), io::ErrorKind::AlreadyExists, "{path:?}");
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
        assert_eq!(std::fs::read_link(&link).unwrap(), file);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "nothing else is left there");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn closed_connections_end_their_wait_for_a_login() {
        let folder = folder("socket-waits");
        let socket = AdminSocket::bind(&folder.join("hub.sock")).unwrap();
        let path = socket.path().to_owned();
        let waiting = Arc::new(Semaphore::new(0));
        let begun = waiting.clone();
        let serving = tokio::spawn(async move {
            let answer = move |request| {
                let begun = begun.clone();
                async move {
                    if matches!(request, AdminRequest::AwaitLogin { .. }) {
                        begun.add_permits(1);
                        std::future::pending::<()>().await;
                    }
                    AdminResponse::Done
                }
            };
            socket.serve(None, answer).await
        });
        let send = async |request: AdminRequest| {
            let mut stream = UnixStream::connect(&path).await.unwrap();
            let line = format!("{}\n", serde_json::to_string(&request).unwrap());
            stream.write_all(line.as_bytes()).await.unwrap();
            stream
        };
        let mut cancelled = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            cancelled.push(send(AdminRequest::AwaitLogin { link: "link".to_owned() }).await);
        }
        let all = waiting.acquire_many(u32::try_from(MAX_CONNECTIONS).unwrap()).await.unwrap();
        drop((all, cancelled));
        let mut next = send(AdminRequest::Reload).await;
        let mut answered = String::new();
        next.shutdown().await.unwrap();
        let read = timeout(Duration::from_secs(60), next.read_to_string(&mut answered)).await;
        assert!(read.is_ok_and(|read| read.is_ok()), "all places are still taken");
        assert_eq!(answered, "\"done\"\n");
        serving.abort();
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn of_hubs_that_start_together_one_gets_the_name() {
        let folder = folder("socket-race");
        let path = folder.join("hub.sock");
        // What a hub that was killed left behind.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let (first, second) = (folder.join("a"), folder.join("b"));
        let listeners = [&first, &second].map(|fresh| std::os::unix::net::UnixListener::bind(fresh).unwrap());
        let taken: Vec<bool> = std::thread::scope(|scope| {
            let take = |fresh| {
                scope.spawn({
                    let path = &path;
                    move || claim_path(fresh, path).is_ok()
                })
            };
            [take(&first), take(&second)].map(|thread| thread.join().unwrap()).into()
        });
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        drop(listeners);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
