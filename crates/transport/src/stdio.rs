use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::line_channel::LineChannel;

/// The channel over this process's standard input and output.
pub type StdioChannel = LineChannel<StdioReader, StdioWriter>;

/// Opens standard input and output as a channel with messages of at most `limit` bytes.
///
/// Standard output is then reserved for the protocol: other output of the process is redirected to standard error, so
/// that a stray `println!` cannot break the stream. Pipes and sockets are read without an extra thread; anything
/// else, such as a terminal or a file, uses tokio's blocking readers.
///
/// # Errors
/// A descriptor cannot be duplicated.
pub fn stdio(limit: usize) -> std::io::Result<StdioChannel> {
    let (reader, writer) = system::open()?;
    Ok(LineChannel::new(reader, writer, limit))
}

/// Standard input, with the fastest reader for its kind.
#[derive(Debug)]
pub struct StdioReader(StdinSource);

/// Standard output, with the fastest writer for its kind.
#[derive(Debug)]
pub struct StdioWriter(StdoutSink);

#[derive(Debug)]
enum StdinSource {
    #[cfg(unix)]
    Pipe(tokio::net::unix::pipe::Receiver),
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
    Other(tokio::io::Stdin),
}

#[derive(Debug)]
enum StdoutSink {
    #[cfg(unix)]
    Pipe(tokio::net::unix::pipe::Sender),
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
    #[cfg(unix)]
    File(tokio::fs::File),
    #[cfg(not(unix))]
    Other(tokio::io::Stdout),
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::fs::FileType;
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{StdinSource, StdioReader, StdioWriter, StdoutSink};

    pub(super) fn open() -> io::Result<(StdioReader, StdioWriter)> {
        let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
        Ok((StdioReader(reader(input)?), StdioWriter(writer(output)?)))
    }

    fn reader(fd: OwnedFd) -> io::Result<StdinSource> {
        Ok(match kind(&fd)? {
            FileType::Fifo => StdinSource::Pipe(
                // A reopened pipe has its own file status flags, so other holders of the pipe do not find it
                // non-blocking.
                match pipe::OpenOptions::new().open_receiver(own_path(&fd)) {
                    Ok(receiver) => receiver,
                    Err(_) => pipe::Receiver::from_owned_fd(fd)?,
                },
            ),
            FileType::Socket => StdinSource::Socket(socket(fd)?),
            _ => StdinSource::Other(tokio::io::stdin()),
        })
    }

    fn writer(fd: OwnedFd) -> io::Result<StdoutSink> {
        Ok(match kind(&fd)? {
            FileType::Fifo => StdoutSink::Pipe(match pipe::OpenOptions::new().open_sender(own_path(&fd)) {
                Ok(sender) => sender,
                Err(_) => pipe::Sender::from_owned_fd(fd)?,
            }),
            FileType::Socket => StdoutSink::Socket(socket(fd)?),
            _ => StdoutSink::File(tokio::fs::File::from_std(fd.into())),
        })
    }

    fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
        let socket = std::os::unix::net::UnixStream::from(fd);
        socket.set_nonblocking(true)?;
        UnixStream::from_std(socket)
    }

    fn kind(fd: &OwnedFd) -> io::Result<FileType> {
        Ok(FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode))
    }

    fn own_path(fd: &OwnedFd) -> String {
        use std::os::fd::AsRawFd as _;
        format!("/proc/self/fd/{}", fd.as_raw_fd())
    }
}

#[cfg(not(unix))]
mod system {
    use super::{StdinSource, StdioReader, StdioWriter, StdoutSink};

    pub(super) fn open() -> std::io::Result<(StdioReader, StdioWriter)> {
        Ok((
            StdioReader(StdinSource::Other(tokio::io::stdin())),
            StdioWriter(StdoutSink::Other(tokio::io::stdout())),
        ))
    }
}

impl AsyncRead for StdioReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        match &mut self.get_mut().0 {
            #[cfg(unix)]
            StdinSource::Pipe(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            #[cfg(unix)]
            StdinSource::Socket(socket) => Pin::new(socket).poll_read(cx, buffer),
            StdinSource::Other(stdin) => Pin::new(stdin).poll_read(cx, buffer),
        }
    }
}

macro_rules! each_writer {
    ($self:ident, $writer:ident => $action:expr) => {
        match &mut $self.get_mut().0 {
            #[cfg(unix)]
            StdoutSink::Pipe($writer) => $action,
            #[cfg(unix)]
            StdoutSink::Socket($writer) => $action,
            #[cfg(unix)]
            StdoutSink::File($writer) => $action,
            #[cfg(not(unix))]
            StdoutSink::Other($writer) => $action,
        }
    };
}

impl AsyncWrite for StdioWriter {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        each_writer!(self, writer => Pin::new(writer).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        each_writer!(self, writer => Pin::new(writer).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        each_writer!(self, writer => Pin::new(writer).poll_shutdown(cx))
    }
}
