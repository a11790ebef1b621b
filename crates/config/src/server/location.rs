use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::options::RemoteTransport;
use crate::secrets::masked_words;
use crate::text::ConfigText;

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerLocation {
    /// A program that is started and uses the stdio transport.
    Program(LocalProgram),
    /// A URL.
    Endpoint(RemoteEndpoint),
}

/// Displays the command line or the URL, with secrets redacted.
impl fmt::Display for ServerLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program(program) => f.write_str(&program.command_line()),
            Self::Endpoint(endpoint) => f.write_str(&endpoint.address()),
        }
    }
}

impl ServerLocation {
    /// Compares the definitions as written; the folder of the file, and the transport if one of the two is detected
    /// automatically, do not count.
    pub(crate) fn same_definition(&self, other: &Self) -> bool {
        let same = |a: &BTreeMap<String, ConfigText>, b: &BTreeMap<String, ConfigText>| {
            let words = |(name, text): (&String, &ConfigText)| (name.clone(), text.as_written().to_owned());
            a.iter().map(words).eq(b.iter().map(words))
        };
        match (self, other) {
            (Self::Program(a), Self::Program(b)) => {
                let same_args =
                    a.args.iter().map(ConfigText::as_written).eq(b.args.iter().map(ConfigText::as_written));
                same_args && a.command.as_written() == b.command.as_written() && same(&a.env, &b.env)
            }
            (Self::Endpoint(a), Self::Endpoint(b)) => {
                let same_wire =
                    a.transport == b.transport || [a.transport, b.transport].contains(&RemoteTransport::Auto);
                same_wire && a.url.as_written() == b.url.as_written() && same(&a.headers, &b.headers)
            }
            _ => false,
        }
    }
}

/// A program that is started. Debug output has neither its arguments nor the values of its environment.
#[derive(Clone, PartialEq, Eq)]
pub struct LocalProgram {
    /// The program itself.
    pub command: ConfigText,
    /// Its arguments.
    pub args: Vec<ConfigText>,
    /// Variables that it gets beside the few that every program gets.
    pub env: BTreeMap<String, ConfigText>,
    /// The working folder; without one it is that of this process, not that of the configuration.
    pub cwd: Option<ConfigText>,
    /// The folder of the configuration file, the base of a relative `cwd`.
    pub(crate) base: PathBuf,
}

impl LocalProgram {
    /// Creates a program without arguments.
    pub fn new(command: impl Into<ConfigText>) -> Self {
        let (args, env) = (Vec::new(), BTreeMap::new());
        Self { command: command.into(), args, env, cwd: None, base: PathBuf::new() }
    }

    /// Returns the folder in which it runs, counted from that of the configuration.
    pub fn folder(&self) -> Option<PathBuf> {
        self.cwd.as_ref().map(|cwd| self.base.join(Path::new(cwd.expose())))
    }

    /// Returns the command line for people to read, with variables by name and not by value, and without what looks like a
    /// secret.
    pub fn command_line(&self) -> String {
        let written = || self.args.iter().map(ConfigText::as_written);
        let masked = masked_words(written()).into_iter();
        let words = written().zip(masked).map(|(word, masked)| masked.unwrap_or_else(|| quoted(word)));
        std::iter::once(quoted(self.command.as_written())).chain(words).collect::<Vec<_>>().join(" ")
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./@:=+,%${}~".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("{word:?}") }
}

impl fmt::Debug for LocalProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalProgram")
            .field("command", &self.command.as_written())
            .field("args", &self.args.len())
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd.as_ref().map(ConfigText::as_written))
            .finish_non_exhaustive()
    }
}

/// A URL with its headers. Debug output has neither the query nor the values of headers.
#[derive(Clone, PartialEq, Eq)]
pub struct RemoteEndpoint {
    /// The address: `http`, `https`, `ws` or `wss`, with a host and without credentials.
    pub url: ConfigText,
    /// Headers of every request, in lower case.
    pub headers: BTreeMap<String, ConfigText>,
    /// The transport.
    pub transport: RemoteTransport,
}

impl RemoteEndpoint {
    /// Creates an endpoint without headers.
    pub fn new(url: impl Into<ConfigText>) -> Self {
        Self { url: url.into(), headers: BTreeMap::new(), transport: RemoteTransport::Auto }
    }

    /// Returns the URL for display, with variables by name and without its query.
    pub fn address(&self) -> String {
        let written = self.url.as_written();
        written.split_once('?').map_or_else(|| written.to_owned(), |(before, _)| format!("{before}?…"))
    }

    /// Reports whether the URL is of a WebSocket.
    pub(crate) fn is_websocket(&self) -> bool {
        self.url.expose().get(..2).is_some_and(|start| start.eq_ignore_ascii_case("ws"))
    }
}

impl fmt::Debug for RemoteEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteEndpoint")
            .field("url", &self.address())
            .field("headers", &self.headers.keys())
            .field("wire", &self.transport)
            .finish()
    }
}

/// Returns what is wrong with a URL, if anything is.
pub(crate) fn check_address(url: &str) -> Option<&'static str> {
    const SCHEMES: [&str; 4] = ["http", "https", "ws", "wss"];
    let Some((scheme, rest)) = url.split_once("://") else {
        return Some("an address begins with http://, https://, ws:// or wss://");
    };
    if !SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known)) {
        return Some("an address begins with http://, https://, ws:// or wss://");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some("the address has a user name or password, which would end up in logs; use `headers`");
    }
    let Ok(parsed) = authority.parse::<http::uri::Authority>() else {
        return Some("the address has no usable host");
    };
    let has_port = parsed.as_str().len() > parsed.host().len();
    if parsed.host().is_empty() || (has_port && parsed.port().is_none()) {
        return Some("the address has no usable host or port");
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some("the address has a character that has to be percent-encoded");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_server_urls_are_rejected_at_parse_time() {
        let table = [
            ("http://127.0.0.1:8080/mcp", true),
            ("HTTPS://example.com", true),
            ("wss://[::1]:9/ws?x=y", true),
            ("https://example.com?key=v", true),
            ("", false),
            ("ftp://x", false),
            ("example.com/mcp", false),
            ("http://", false),
            ("http://:80/", false),
            ("http://a:/", false),
            ("http://a:99999/", false),
            ("http://user:pw@example.com/", false),
            ("http://a b/", false),
            ("http://a/b c", false),
            ("http://a/ä", false),
            ("javascript:alert(1)", false),
        ];
        for (url, valid) in table {
            assert_eq!(check_address(url).is_none(), valid, "{url}: {:?}", check_address(url));
        }
    }

    #[test]
    fn server_debug_and_display_have_no_secrets() {
        let mut program = LocalProgram::new("run");
        program.args = vec![
            ConfigText::expanded("--token=${T}".into(), "--token=canary".into()),
            ConfigText::new("a b"),
        ];
        program.env.insert("T".into(), ConfigText::new("canary"));
        let mut endpoint = RemoteEndpoint::new("https://h/mcp?key=canary");
        endpoint.headers.insert("authorization".into(), ConfigText::new("Bearer canary"));
        let shown = format!("{program:?} {} {endpoint:?} {}", program.command_line(), endpoint.address());
        assert!(!shown.contains("canary"), "{shown}");
        assert_eq!(program.command_line(), "run --token=${T} \"a b\"");
        program.args = ["--port", "80", "--token=canary", "--api-key", "canary"].map(ConfigText::new).into();
        assert_eq!(program.command_line(), "run --port 80 --token=… --api-key …");
        assert_eq!(endpoint.address(), "https://h/mcp?…");
    }
}
