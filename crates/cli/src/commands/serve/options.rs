use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, Args};
use trunkline_hub::NameTemplate;
use trunkline_server::http::{AnonymousAuthenticator, Authenticator, BearerTokens, ServerTls};
use trunkline_server::{EnvPolicy, HostOptions, Layers, ServerLimits, StateKeys, Trace};

use super::ServeTransport;
use crate::builtin::BuiltinServer;
use crate::exit::CliFailure;
use crate::logging::LogArgs;
use crate::signals::ProcessShutdown;
use crate::values::{
    AuthSource, ListenAddress, parse_duration, parse_endpoint_path, parse_host, parse_lifetime, parse_origin,
    parse_size, parse_variable_name,
};

/// The heading of what only HTTP needs.
pub(crate) const HTTP_HEADING: &str = "HTTP";

/// Reports whether an option means something over HTTP alone.
pub(crate) fn is_http_option(arg: &Arg) -> bool {
    arg.get_help_heading() == Some(HTTP_HEADING)
}

/// Serve many servers as one: those of a file, or built-in ones
#[derive(Debug, Args)]
#[command(next_line_help = true, mut_args(|arg| if is_http_option(&arg) { arg.conflicts_with("stdio") } else { arg }))]
pub(crate) struct ServeArgs {
    /// Serve standard input and output instead of HTTP
    #[arg(long)]
    pub(super) stdio: bool,
    /// The built-in servers to serve, of echo and time; both, unless a
    /// file has something to serve
    #[arg(
        verbatim_doc_comment,
        long,
        value_name = "NAMES",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(super) builtin: Vec<BuiltinServer>,
    /// The file that says what is served, else the trunkline.toml or
    /// mcp.json of this folder
    #[arg(verbatim_doc_comment, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Look for no file
    #[arg(long, conflicts_with = "config")]
    pub(super) no_config: bool,
    /// How tools of servers are called, else {server}__{tool}
    #[arg(long, value_name = "TEMPLATE")]
    pub(super) names: Option<NameTemplate>,
    /// How long lists wait for servers that still start [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) list_wait: Option<Duration>,
    /// Where those who run the hub talk to it, else where it follows
    /// from the file; a socket for this user alone
    #[arg(verbatim_doc_comment, long, value_name = "PATH")]
    pub(super) admin_socket: Option<PathBuf>,
    /// Append a line of JSON for each call to a file
    #[arg(long, value_name = "FILE")]
    pub(super) audit: Option<PathBuf>,
    /// Write the arguments of calls into it too
    #[arg(long)]
    pub(super) audit_arguments: bool,
    /// A variable that tools may see: of this process over standard input,
    /// of the caller's X-Env-NAME header over HTTP; repeatable
    #[arg(verbatim_doc_comment, long, value_name = "NAME", value_parser = parse_variable_name)]
    pub(super) env: Vec<String>,
    /// HOST:PORT, :PORT or PORT, where 0 is any
    #[arg(long = "http", value_name = "ADDR", default_value = "127.0.0.1:7411", help_heading = HTTP_HEADING)]
    pub(super) address: ListenAddress,
    #[command(flatten)]
    pub(super) edge: EdgeArgs,
}

/// How callers are served, whatever it is that they are served.
#[derive(Debug, Args)]
pub(crate) struct EdgeArgs {
    /// How long calls may take to finish at shutdown, or after standard
    /// input has ended
    #[arg(verbatim_doc_comment, long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub(super) grace: Duration,
    /// The largest message that is taken, from either side
    #[arg(long, value_name = "BYTES", default_value = "4MiB", value_parser = parse_size)]
    pub(crate) max_message: usize,
    /// Take roots from clientInfo too, where some old clients put them
    #[arg(long)]
    pub(super) compat_clientinfo_roots: bool,
    /// Refuse what a legacy client asks for before it has sent
    /// notifications/initialized
    #[arg(verbatim_doc_comment, long)]
    pub(super) strict: bool,
    /// Tell a legacy client the id of its session in _meta of the answer to
    /// initialize too, as trunkline/sessionId
    #[arg(verbatim_doc_comment, long)]
    pub(super) session_in_meta: bool,
    #[command(flatten)]
    pub(super) http: HttpArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// What only HTTP needs.
#[derive(Debug, Args)]
#[command(next_help_heading = HTTP_HEADING)]
pub(crate) struct HttpArgs {
    /// The path of the endpoint
    #[arg(long, value_name = "PATH", default_value = "/mcp", value_parser = parse_endpoint_path)]
    pub(super) path: String,
    /// Who may call: bearer:FILE, where FILE has one NAME TOKEN a line
    #[arg(long, value_name = "KIND:FILE")]
    pub(super) auth: Option<AuthSource>,
    /// Let anybody call who can reach the address, even off the loopback
    #[arg(long, conflicts_with = "auth")]
    pub(super) insecure_no_auth: bool,
    /// An origin whose pages may call, beside the loopback; repeatable
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    pub(super) allow_origin: Vec<String>,
    /// A name that clients may reach us by, beside the loopback; repeatable
    #[arg(long, value_name = "HOST", value_parser = parse_host)]
    pub(super) allow_host: Vec<String>,
    /// The path that is read as a stream in HTTP+SSE
    #[arg(long, value_name = "PATH", default_value = "/sse", value_parser = parse_endpoint_path)]
    pub(super) sse_path: String,
    /// The path that messages are posted to in HTTP+SSE
    #[arg(long, value_name = "PATH", default_value = "/messages", value_parser = parse_endpoint_path)]
    pub(super) messages_path: String,
    /// The path of WebSockets
    #[arg(long, value_name = "PATH", default_value = "/ws", value_parser = parse_endpoint_path)]
    pub(super) ws_path: String,
    /// Serve Streamable HTTP alone: neither HTTP+SSE nor WebSocket
    #[arg(long, conflicts_with_all = ["cookie_sessions", "sse_path", "messages_path", "ws_path"])]
    pub(super) only_streamable: bool,
    /// Give clients of HTTP+SSE a cookie that names what is kept for them
    #[arg(long)]
    pub(super) cookie_sessions: bool,
    /// Speak TLS, with a chain of certificates and a key in PEM files
    #[arg(long, num_args = 2, value_names = ["CERT", "KEY"])]
    pub(super) tls: Vec<PathBuf>,
    /// Answer with event streams even where plain JSON would do
    #[arg(long)]
    pub(super) always_sse: bool,
    /// How long a legacy session lives without being used
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_lifetime)]
    pub(super) session_ttl: Duration,
    /// The most legacy sessions at one time
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(super) max_sessions: NonZero<usize>,
    /// A secret file of 32 bytes or more that lets calls which wait for an
    /// answer survive a restart; repeatable, the first seals and all open
    #[arg(verbatim_doc_comment, long, value_name = "FILE")]
    pub(super) state_key: Vec<PathBuf>,
    /// Where /metrics, /healthz and /readyz are served too, for those who
    /// run the server; on the loopback --http has them itself, unless
    /// --auth or --allow-host is given. Elsewhere --auth holds here too
    #[arg(verbatim_doc_comment, long, value_name = "ADDR")]
    pub(super) admin: Option<ListenAddress>,
    /// How long to answer 503 on /readyz before shutting down
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    pub(super) drain_delay: Duration,
    /// A file to write the address to when ready
    #[arg(long, value_name = "FILE")]
    pub(super) port_file: Option<PathBuf>,
    /// An open descriptor to write the address to when ready, on one line
    #[cfg(unix)]
    #[arg(long, value_name = "N")]
    pub(super) ready_fd: Option<u32>,
}

impl ServeArgs {
    /// Returns where callers come from.
    pub(super) fn transport(&self) -> ServeTransport<'_> {
        if self.stdio { ServeTransport::Stdio } else { ServeTransport::Http(&self.address) }
    }

    /// Returns the variables that tools may see, by where they come from.
    ///
    /// # Errors
    /// Two of them differ in nothing that a header could tell.
    pub(super) fn env(&self) -> Result<EnvPolicy, CliFailure> {
        if self.stdio {
            return Ok(EnvPolicy { from_process: self.env.clone(), ..EnvPolicy::default() });
        }
        for (at, name) in self.env.iter().enumerate() {
            let mut others = self.env.iter().skip(at + 1);
            if let Some(other) = others.find(|other| *other != name && other.eq_ignore_ascii_case(name)) {
                return Err(CliFailure::configuration(format!(
                    "the variables {name} and {other} cannot be told apart: headers have no case"
                ))
                .hint(format!("give one of them, as `--env {name}`")));
            }
        }
        Ok(EnvPolicy { from_headers: self.env.clone(), ..EnvPolicy::default() })
    }
}

impl EdgeArgs {
    /// Returns the bounds of what is served.
    pub(super) fn limits(&self) -> ServerLimits {
        ServerLimits { message_bytes: self.max_message, ..ServerLimits::default() }
    }

    /// Puts together how a handler is served.
    ///
    /// # Errors
    /// A key cannot be used.
    pub(crate) fn host_options(&self, departure: &ProcessShutdown) -> Result<HostOptions, CliFailure> {
        Ok(HostOptions {
            limits: self.limits(),
            state_keys: self.state_keys()?,
            layers: Layers::new().with(Trace::new()),
            shutdown: departure.shutdown().clone(),
            client_info_roots: self.compat_clientinfo_roots,
            require_initialized: self.strict,
            session_in_meta: self.session_in_meta,
            ..HostOptions::default()
        })
    }

    /// Reads the keys under which state travels through clients; `None` is one that dies with the process.
    fn state_keys(&self) -> Result<Option<StateKeys>, CliFailure> {
        if self.http.state_key.is_empty() {
            return Ok(None);
        }
        let keys = StateKeys::from_files(&self.http.state_key).map_err(|error| {
            CliFailure::configuration(error)
                .hint("a key is 32 or more random bytes in a file that only you can read")
        })?;
        Ok(Some(keys))
    }
}

impl HttpArgs {
    /// Reads the certificate and its key.
    pub(super) fn tls(&self) -> Result<Option<ServerTls>, CliFailure> {
        let [certificate, key] = self.tls.as_slice() else { return Ok(None) };
        let tls = ServerTls::from_pem_files(certificate, key).map_err(|error| {
            CliFailure::configuration(error)
                .hint("`--tls CERT KEY` takes two PEM files, the key in one that only you can read")
        })?;
        Ok(Some(tls))
    }

    /// Checks that no two things are served at one path.
    pub(super) fn check_paths(&self) -> Result<(), CliFailure> {
        let paths = [&self.path, &self.sse_path, &self.messages_path, &self.ws_path];
        let twice =
            paths.iter().enumerate().find(|(at, path)| paths.iter().take(*at).any(|other| other == *path));
        match twice {
            Some((_, path)) if !self.only_streamable => {
                Err(CliFailure::configuration(format!("two things cannot be served at {path}"))
                    .hint("`--only-streamable` serves the endpoint alone"))
            }
            _ => Ok(()),
        }
    }

    /// Reads who may call.
    pub(super) fn authenticator(&self) -> Result<Arc<dyn Authenticator>, CliFailure> {
        match &self.auth {
            None => Ok(Arc::new(AnonymousAuthenticator)),
            Some(AuthSource::Bearer(file)) => {
                let tokens = BearerTokens::from_file(file).map_err(|error| {
                    CliFailure::configuration(error)
                        .hint("a line such as `ann 0f3a…` lets ann call with that token")
                })?;
                Ok(Arc::new(tokens))
            }
        }
    }
}
