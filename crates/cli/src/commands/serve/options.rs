use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args};
use trunkline_hub::NameTemplate;
use trunkline_server::http::{ProtectedResource, ServerTls};
use trunkline_server::{EnvPolicy, HostOptions, Layers, ServerLimits, StateKeys, Trace};

use super::ServeTransport;
use super::plan_trust::TrustMode;
use crate::builtin::BuiltinServer;
use crate::exit::CliFailure;
use crate::logging::LogArgs;
use crate::signals::ProcessShutdown;
use crate::values::{
    AuthSource, ListenAddress, StoreLocation, parse_duration, parse_endpoint_path, parse_host,
    parse_lifetime, parse_origin, parse_public_url, parse_size, parse_variable_name,
};

/// The heading of what only HTTP needs.
pub(crate) const HTTP_HEADING: &str = "HTTP";

/// Reports whether an option means something over HTTP alone.
pub(crate) fn is_http_option(arg: &Arg) -> bool {
    arg.get_help_heading() == Some(HTTP_HEADING)
}

/// Run the hub: serve all configured servers as one
#[derive(Debug, Args)]
#[command(next_line_help = true, mut_args(|arg| if is_http_option(&arg) { arg.conflicts_with("stdio") } else { arg }))]
pub(crate) struct ServeArgs {
    /// Serve stdio instead of HTTP
    #[arg(long)]
    pub(super) stdio: bool,
    /// Built-in servers: echo, time or both
    /// [default: both, or none if a config file has something to serve]
    #[arg(
        verbatim_doc_comment,
        long,
        value_name = "NAMES",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true
    )]
    pub(super) builtin: Vec<BuiltinServer>,
    /// Config file [default: trunkline.toml or mcp.json in this folder]
    #[arg(verbatim_doc_comment, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Ignore config files
    #[arg(long, conflicts_with = "config")]
    pub(super) no_config: bool,
    /// Trust the config file without asking, also when it changes
    #[arg(long)]
    pub(super) trust: bool,
    /// Template for tool names [default: {server}__{tool}]
    #[arg(long, value_name = "TEMPLATE")]
    pub(super) names: Option<NameTemplate>,
    /// How long a list request waits for starting servers [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(super) list_wait: Option<Duration>,
    /// Path of the admin socket, which only this user can access
    /// [default: derived from the config file]
    #[arg(verbatim_doc_comment, long, value_name = "PATH")]
    pub(super) admin_socket: Option<PathBuf>,
    /// Do not serve the web console
    #[arg(long)]
    pub(super) no_console: bool,
    /// Append a line of JSON to this file for each call
    #[arg(long, value_name = "FILE")]
    pub(super) audit: Option<PathBuf>,
    /// Include the arguments of calls in the audit log
    #[arg(long)]
    pub(super) audit_arguments: bool,
    /// Environment variable that tools may read: from this process over
    /// stdio, from the client's X-Env-NAME header over HTTP; repeatable
    #[arg(verbatim_doc_comment, long, value_name = "NAME", value_parser = parse_variable_name)]
    pub(super) env: Vec<String>,
    /// Listen on HOST:PORT, :PORT or PORT (0: any)
    #[arg(long = "http", alias = "port", value_name = "ADDR", default_value = "127.0.0.1:7411", help_heading = HTTP_HEADING)]
    pub(super) address: ListenAddress,
    #[command(flatten)]
    pub(super) edge: EdgeArgs,
}

/// How callers are served, whatever it is that they are served.
#[derive(Debug, Args)]
pub(crate) struct EdgeArgs {
    /// Time for calls at shutdown; over stdio at most 5s
    #[arg(verbatim_doc_comment, long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    pub(super) grace: Duration,
    /// Maximum size of a client's message
    #[arg(long, value_name = "BYTES", default_value = "4MiB", value_parser = parse_size)]
    pub(crate) max_message: usize,
    /// Maximum size of an upstream server's message
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = parse_size)]
    pub(crate) max_upstream_message: usize,
    /// Also read roots from clientInfo, where some old clients put them
    #[arg(long)]
    pub(super) compat_clientinfo_roots: bool,
    /// Reject requests from legacy clients before
    /// notifications/initialized
    #[arg(verbatim_doc_comment, long)]
    pub(super) strict: bool,
    /// Add the session id of legacy clients to _meta of the initialize
    /// result, as trunkline/sessionId
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
    /// Path of the MCP endpoint
    #[arg(long, value_name = "PATH", default_value = "/mcp", value_parser = parse_endpoint_path)]
    pub(super) path: String,
    /// Authenticate clients: bearer:FILE, with NAME TOKEN on each line, or
    /// config:FILE, with a table [auth]. The file is read again when it
    /// changes and on SIGHUP; clients of a removed token are disconnected
    /// [default: the table [auth] of the config file, if it has one]
    #[arg(verbatim_doc_comment, long, value_name = "KIND:FILE")]
    pub(super) auth: Option<AuthSource>,
    /// URL by which clients reach the MCP endpoint, for the OAuth
    /// protected resource metadata
    #[arg(verbatim_doc_comment, long, value_name = "URL", value_parser = parse_public_url)]
    pub(super) public_url: Option<ProtectedResource>,
    /// Allow clients from other machines without authentication
    #[arg(long, conflicts_with = "auth")]
    pub(super) insecure_no_auth: bool,
    /// Web origin to allow in addition to loopback; repeatable
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    pub(super) allow_origin: Vec<String>,
    /// Host name to allow in addition to loopback; repeatable
    #[arg(long, value_name = "HOST", value_parser = parse_host)]
    pub(super) allow_host: Vec<String>,
    /// Path of the HTTP+SSE event stream
    #[arg(long, value_name = "PATH", default_value = "/sse", value_parser = parse_endpoint_path)]
    pub(super) sse_path: String,
    /// Path for HTTP+SSE messages (POST)
    #[arg(long, value_name = "PATH", default_value = "/messages", value_parser = parse_endpoint_path)]
    pub(super) messages_path: String,
    /// Path of the WebSocket endpoint
    #[arg(long, value_name = "PATH", default_value = "/ws", value_parser = parse_endpoint_path)]
    pub(super) ws_path: String,
    /// Serve only Streamable HTTP, without HTTP+SSE and WebSocket
    #[arg(long, conflicts_with_all = ["cookie_sessions", "sse_path", "messages_path", "ws_path"])]
    pub(super) only_streamable: bool,
    /// Set a session cookie for HTTP+SSE clients
    #[arg(long)]
    pub(super) cookie_sessions: bool,
    /// Serve TLS with a certificate chain and a key, as PEM files; they
    /// are read again when they change and on SIGHUP
    #[arg(verbatim_doc_comment, long, num_args = 2, value_names = ["CERT", "KEY"])]
    pub(super) tls: Vec<PathBuf>,
    /// Always respond with SSE
    #[arg(long)]
    pub(super) always_sse: bool,
    /// Idle timeout of legacy sessions
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = parse_lifetime)]
    pub(super) session_ttl: Duration,
    /// Maximum number of legacy sessions
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(super) max_sessions: NonZero<usize>,
    /// Key file (32 bytes or more) that lets calls waiting for input survive
    /// a restart and seals a --store; repeatable: the first key encrypts,
    /// all keys can decrypt. Processes that share a store share the keys.
    /// The files are read again when they change and on SIGHUP
    #[arg(verbatim_doc_comment, long, value_name = "FILE")]
    pub(super) state_key: Vec<PathBuf>,
    /// Where sessions are stored: memory, file:PATH to keep them when the
    /// process restarts, or redis://HOST or rediss://HOST (TLS) to share
    /// them with other processes; a file and Redis need --state-key
    /// [default: memory]
    #[arg(verbatim_doc_comment, long, value_name = "STORE")]
    pub(super) store: Option<StoreLocation>,
    /// Also serve /metrics, /healthz and /readyz on this address; off
    /// loopback, --auth applies here too. A loopback --http address has
    /// them already, unless --auth or --allow-host is given
    #[arg(verbatim_doc_comment, long, value_name = "ADDR")]
    pub(super) admin: Option<ListenAddress>,
    /// How long /readyz returns 503 before shutdown begins
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    pub(super) drain_delay: Duration,
    /// Write the address to this file when ready
    #[arg(long, value_name = "FILE")]
    pub(super) port_file: Option<PathBuf>,
    /// Write the address to this file descriptor when ready
    #[cfg(unix)]
    #[arg(long, value_name = "N")]
    pub(super) ready_fd: Option<u32>,
}

impl ServeArgs {
    /// Returns where callers come from.
    pub(super) fn transport(&self) -> ServeTransport<'_> {
        if self.stdio { ServeTransport::Stdio } else { ServeTransport::Http(&self.address) }
    }

    /// Returns whether the commands of the file have to be trusted first.
    pub(super) fn trust_mode(&self) -> TrustMode {
        if self.trust { TrustMode::Granted } else { TrustMode::Ask }
    }

    /// Returns the variables that tools may see, by where they come from.
    ///
    /// # Errors
    /// Two names are the same header name, which is case-insensitive (RFC 9110 §5.1).
    pub(super) fn env(&self) -> Result<EnvPolicy, CliFailure> {
        if self.stdio {
            return Ok(EnvPolicy { from_process: self.env.clone(), ..EnvPolicy::default() });
        }
        for (at, name) in self.env.iter().enumerate() {
            let mut others = self.env.iter().skip(at + 1);
            if let Some(other) = others.find(|other| *other != name && other.eq_ignore_ascii_case(name)) {
                return Err(CliFailure::configuration(format!(
                    "variables {name} and {other} clash: header names are case-insensitive"
                ))
                .hint(format!("pass only one of them, such as `--env {name}`")));
            }
        }
        Ok(EnvPolicy { from_headers: self.env.clone(), ..EnvPolicy::default() })
    }
}

impl EdgeArgs {
    /// Returns the bounds of what is served.
    pub(super) fn limits(&self) -> ServerLimits {
        let mut limits = ServerLimits { message_bytes: self.max_message, ..ServerLimits::default() };
        super::descriptors::limit_connections(&mut limits);
        limits
    }

    /// Puts together how a handler is served.
    ///
    /// # Errors
    /// A key cannot be used.
    pub(crate) fn host_options(&self, shutdown: &ProcessShutdown) -> Result<HostOptions, CliFailure> {
        Ok(HostOptions {
            limits: self.limits(),
            state_keys: self.state_keys()?,
            layers: Layers::new().with(Trace::new()),
            shutdown: shutdown.shutdown().clone(),
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
                .hint("use a file of 32 or more random bytes that only you can read")
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
                .hint("`--tls CERT KEY` takes two PEM files; only you may be able to read the key")
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
                Err(CliFailure::configuration(format!("{path} is used for two endpoints"))
                    .hint("use different paths, or `--only-streamable`"))
            }
            _ => Ok(()),
        }
    }

    /// Reports whether there are secret files, which are read again on SIGHUP.
    pub(super) fn has_secret_files(&self) -> bool {
        self.auth.is_some() || !self.tls.is_empty() || !self.state_key.is_empty()
    }
}
