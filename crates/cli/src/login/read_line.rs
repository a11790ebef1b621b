use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

/// The longest line that is read; a redirect URL has a few KiB.
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Reports whether a user sits at a terminal.
pub(super) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Reads a line of standard input on a thread of its own. The thread is abandoned if the future is dropped.
///
/// # Errors
/// The input has ended, or cannot be read.
pub(super) async fn read_line() -> io::Result<String> {
    let reading = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let count = io::stdin().lock().take(MAX_LINE_BYTES).read_line(&mut line)?;
        if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(line) }
    });
    reading.await.map_err(io::Error::other)?
}
