use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use trunkline_http1::{Url, UrlError};

use crate::channel::Channel;
use crate::process::{Command, CommandLineError};

/// The server that a client connects to.
///
/// A text is a URL if it has a scheme, a configured name if it is one plain word, and a command line otherwise:
///
/// ```
/// use trunkline_transport::Target;
///
/// assert!(matches!(Target::from("https://example.com/mcp"), Target::Url(_)));
/// assert!(matches!(Target::from("npx -y some-server"), Target::Command(_)));
/// assert!(matches!(Target::from("./server"), Target::Command(_)));
/// assert!(matches!(Target::from("github"), Target::Name { .. }));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target {
    /// A server that is reached by HTTP or WebSocket.
    Url(Url),
    /// A program that is started and uses the stdio transport.
    Command(Command),
    /// A server by its name in a configuration file; see [`Target::or_command`].
    Name {
        /// The name.
        name: String,
        /// The file; `None` for the default search.
        file: Option<PathBuf>,
    },
    /// An opener of channels, such as to a server in this process.
    Channel(ChannelOpener),
    /// An invalid text; connecting fails with the reason.
    Invalid(TargetError),
}

/// The reason why a text is not a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The text has a scheme and is not a valid URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The text is not a valid command line.
    #[error(transparent)]
    Command(#[from] CommandLineError),
}

impl Target {
    /// Converts a name that is not configured to the program of that name.
    #[must_use]
    pub fn or_command(self) -> Self {
        match self {
            Self::Name { name, .. } => Self::Command(Command::new(name)),
            other => other,
        }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let text = text.trim();
        if text.contains("://") && !text.contains(char::is_whitespace) {
            return Ok(Self::Url(text.parse()?));
        }
        let plain = |c: char| c.is_alphanumeric() || "-_.@".contains(c);
        if !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(plain) {
            return Ok(Self::Name { name: text.to_owned(), file: None });
        }
        Ok(Self::Command(text.parse()?))
    }
}

impl From<&str> for Target {
    fn from(text: &str) -> Self {
        text.parse().unwrap_or_else(Self::Invalid)
    }
}

impl From<String> for Target {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&String> for Target {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<Url> for Target {
    fn from(url: Url) -> Self {
        Self::Url(url)
    }
}

impl From<Command> for Target {
    fn from(command: Command) -> Self {
        Self::Command(command)
    }
}

impl From<ChannelOpener> for Target {
    fn from(opener: ChannelOpener) -> Self {
        Self::Channel(opener)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => url.fmt(f),
            Self::Command(command) => command.fmt(f),
            Self::Name { name, .. } => f.write_str(name),
            Self::Channel(opener) => f.write_str(&opener.label),
            Self::Invalid(_) => f.write_str("an unreadable target"),
        }
    }
}

/// Opens a new channel to the same peer on each call.
#[derive(Clone)]
pub struct ChannelOpener {
    label: Arc<str>,
    open: Arc<OpenFn>,
}

type OpenFn = dyn Fn() -> BoxFuture<'static, io::Result<Box<dyn Channel>>> + Send + Sync;

impl ChannelOpener {
    /// Creates an opener; the label names the peer in messages.
    pub fn new<F, R, C>(label: impl Into<Arc<str>>, open: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = io::Result<C>> + Send + 'static,
        C: Channel,
    {
        let open = move || {
            let opening = open();
            async move { opening.await.map(|channel| Box::new(channel) as Box<dyn Channel>) }.boxed()
        };
        Self { label: label.into(), open: Arc::new(open) }
    }

    /// Opens a channel.
    ///
    /// # Errors
    /// The peer cannot be reached.
    pub async fn open(&self) -> io::Result<Box<dyn Channel>> {
        (self.open)().await
    }

    /// Returns the label of the peer.
    pub fn label(&self) -> &str {
        &self.label
    }
}

impl fmt::Debug for ChannelOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelOpener").field("label", &self.label).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_text_is_a_url_a_name_a_command_or_invalid() {
        let table = [
            ("http://127.0.0.1:1/mcp", "Url(Url(http://127.0.0.1:1/mcp))"),
            ("ws://h/", "Url(Url(ws://h/))"),
            ("ftp://h/", "Invalid(Url(Scheme))"),
            ("github", "Name { name: \"github\", file: None }"),
            ("server-2.1", "Name { name: \"server-2.1\", file: None }"),
            ("", "Invalid(Command(Empty))"),
            ("a 'b", "Invalid(Command(Unclosed('\\'')))"),
        ];
        for (text, expected) in table {
            assert_eq!(format!("{:?}", Target::from(text)), expected, "{text}");
        }
        for command in ["./server", "/bin/server", "npx -y x", "curl http://h/", "-x"] {
            assert!(matches!(Target::from(command), Target::Command(_)), "{command}");
            assert_eq!(Target::from(command).to_string(), command);
        }
    }

    #[test]
    fn unconfigured_name_becomes_a_program() {
        assert!(
            matches!(Target::from("server").or_command(), Target::Command(c) if c == Command::new("server"))
        );
        assert!(matches!(Target::from("http://h/").or_command(), Target::Url(_)));
    }

    #[tokio::test]
    async fn channel_opener_opens_a_new_channel_on_each_call() {
        let opener = ChannelOpener::new("a peer", || async { Ok(crate::memory(1).0) });
        let target = Target::from(opener.clone());
        assert_eq!(target.to_string(), "a peer");
        for _ in 0..2 {
            let mut channel = opener.open().await.unwrap();
            // The peer's end was dropped at once.
            assert!(std::future::poll_fn(|cx| channel.poll_receive(cx)).await.is_none());
        }
    }
}
