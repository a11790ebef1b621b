use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use trunkline_process::{ChildPipes, ChildWatch, ExitCause, PipeReader, PipeWriter, ProcessPhase};
use trunkline_protocol::envelope;

use crate::channel::{Channel, ReceiveError};
use crate::line_channel::LineChannel;

/// The channel over the pipes of a child.
///
/// Lines on its standard output that are not messages are skipped and counted. After the child's exit, the channel
/// yields one last error, [`ReceiveError::Broken`], with an [`ExitReport`](trunkline_process::ExitReport); it just
/// ends if the exit was requested. Dropping the channel closes the child's standard input, on which a well-behaved
/// server exits.
pub struct ProcessChannel {
    lines: LineChannel<PipeReader, ChildInput>,
    child: ChildWatch,
    /// Whether standard output was read to its end.
    stdout_closed: bool,
    /// Whether everything was yielded, including the final error.
    is_closed: bool,
}

impl ProcessChannel {
    pub(super) fn new(pipes: ChildPipes, limit: usize) -> Self {
        let ChildPipes { stdin, stdout, child, .. } = pipes;
        let lines = LineChannel::new(stdout, ChildInput(stdin), limit);
        Self { lines, child, stdout_closed: false, is_closed: false }
    }

    /// Polls for the next message, or for the end of standard output.
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        loop {
            match self.lines.poll_receive(cx) {
                // A program that ended within a message is reported as ended, and not for its message.
                Poll::Ready(Some(Ok(line))) if self.lines.is_at_end() && envelope::is_cut_off(&line) => {
                    self.child.record_noise(&line);
                }
                Poll::Ready(Some(Ok(line)))
                    if !may_be_message(&line) && envelope::find_legible_part(&line).is_none() =>
                {
                    self.child.record_noise(&line);
                }
                // A read error counts as the end of the pipe; the exit report is more precise.
                Poll::Ready(Some(Err(ReceiveError::Broken(_)))) => return Poll::Ready(None),
                other => return other,
            }
        }
    }

    fn finish(&mut self) -> Option<Result<Bytes, ReceiveError>> {
        self.is_closed = true;
        let ended = self.child.exit_report().filter(|ended| ended.cause != ExitCause::Requested)?;
        Some(Err(ReceiveError::Broken(io::Error::new(io::ErrorKind::UnexpectedEof, ended))))
    }
}

impl fmt::Debug for ProcessChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessChannel")
            .field("lines", &self.lines)
            .field("child", &self.child)
            .finish_non_exhaustive()
    }
}

impl Channel for ProcessChannel {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, ReceiveError>>> {
        loop {
            if self.is_closed {
                return Poll::Ready(None);
            }
            // The phase is read before the pipe: all output of an exited child is in the pipe by then.
            let phase = self.child.phase(cx);
            if phase != ProcessPhase::Running {
                self.lines.writer_mut().close();
            }
            if !self.stdout_closed {
                match self.poll_message(cx) {
                    Poll::Ready(Some(message)) => return Poll::Ready(Some(message)),
                    Poll::Ready(None) => {
                        self.stdout_closed = true;
                        self.child.request_exit(ExitCause::ClosedOutput);
                        continue;
                    }
                    // Without tokio's coop budget nothing was read, and the task was woken to try again.
                    Poll::Pending if !tokio::task::coop::has_budget_remaining() => return Poll::Pending,
                    Poll::Pending => {}
                }
            }
            return match phase {
                ProcessPhase::Exited(_) => Poll::Ready(self.finish()),
                ProcessPhase::Running | ProcessPhase::Ending(_) => Poll::Pending,
            };
        }
    }

    fn send(&mut self, message: &str) {
        // A child with a closed standard input is about to exit, and the queue must not grow until then.
        if self.lines.writer_mut().is_open() {
            self.lines.send(message);
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.lines.writer_mut().is_open() {
            return Poll::Ready(Ok(()));
        }
        match self.lines.poll_flush(cx) {
            Poll::Ready(Err(_)) => {
                // The exit report at the end of the channel, which follows at once, is more precise than this error.
                self.lines.writer_mut().close();
                self.child.request_exit(ExitCause::ClosedInput);
                Poll::Ready(Ok(()))
            }
            other => other,
        }
    }

    fn unread_bytes(&self) -> usize {
        self.lines.unread_bytes()
    }

    fn queued(&self) -> usize {
        if self.lines.writer().is_open() { self.lines.queued() } else { 0 }
    }
}

/// Reports whether a line can be a message: an object, or a batch of them. The receiver parses it fully.
fn may_be_message(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let (Some(first), Some(last)) = (line.first(), line.last()) else { return false };
    let inner = line.get(1..).unwrap_or_default().trim_ascii_start().first();
    match (first, last) {
        (b'{', b'}') => matches!(inner, Some(b'"' | b'}')),
        (b'[', b']') => matches!(inner, Some(b'{' | b']')),
        _ => false,
    }
}

/// The standard input of a child, until it is closed.
#[derive(Debug)]
pub(super) struct ChildInput(Option<PipeWriter>);

impl ChildInput {
    fn close(&mut self) {
        self.0 = None;
    }

    fn is_open(&self) -> bool {
        self.0.is_some()
    }
}

impl AsyncWrite for ChildInput {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Some(pipe) => Pin::new(pipe).poll_write(cx, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().close();
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banners_are_distinguished_from_messages_by_their_delimiters() {
        let table = [
            (r#"{"jsonrpc":"2.0"}"#, true),
            (r#"  { "jsonrpc" : "2.0" } "#, true),
            ("{}", true),
            (r#"[{"a":1},{"b":2}]"#, true),
            ("[ ]", true),
            ("Listening on port 3000", false),
            ("[INFO] ready", false),
            ("[info] [x]", false),
            ("{ name: 'server' }", false),
            (r#"{"jsonrpc":"2.0","id""#, false),
            ("{", false),
            ("}", false),
            ("42", false),
            ("\"text\"", false),
            ("\u{feff}{}", false),
        ];
        for (line, expected) in table {
            assert_eq!(may_be_message(line.as_bytes()), expected, "{line}");
        }
    }
}
