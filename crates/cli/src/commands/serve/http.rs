use std::convert::Infallible;
use std::io::{self, IsTerminal as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use trunkline_hub::{AnonymousClients, LoginAudience, UserLogins};
use trunkline_server::Host;
use trunkline_server::http::{
    self, AllowList, Authenticator, CookieSessions, DrainOutcome, HttpServerOptions, PortFile, SsePaths,
};

use super::PreparedService;
use super::auth::InboundAuth;
use super::banner::{Banner, BannerCredential};
use super::console::HubConsole;
use super::gateway::SessionSource;
use super::health::{
    AdminService, EndpointWithProbes, HealthProbes, LIVENESS_PATH, METRICS_PATH, ProbeAudience,
    READINESS_PATH,
};
use super::options::HttpArgs;
use super::secret_files::SecretFiles;
use super::session_store;
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::signals::Signals;
use crate::values::ListenAddress;

/// Serves HTTP until a signal comes.
///
/// # Errors
/// Something that was configured cannot be used, the address cannot be listened on, or calls had to be ended.
pub(super) async fn serve(
    serving: &PreparedService<'_>,
    wanted: &ListenAddress,
    signals: Signals,
) -> Result<(), CliFailure> {
    let PreparedService { edge, host, metrics, shutdown, .. } = serving;
    let args = &edge.http;
    args.check_paths()?;
    let settings = serving.auth_settings()?;
    let has_auth = args.auth.is_some() || settings.is_some();
    let InboundAuth { authenticator, protected_resource, tokens, table } =
        InboundAuth::new(args, settings, serving.logins.as_ref())?;
    let tls = args.tls()?;
    // Handled even if nothing is to be read again: the default action of the signal ends the process.
    let hangups = super::install_hangups()?;
    let addresses = permitted_addresses(args, has_auth, "--http", wanted)?;
    let port_file = args.port_file.as_deref().map(claim_port_file).transpose()?;
    let (listener, address) = listen(wanted, "--http", &addresses).await?;
    let probes = |audience| HealthProbes {
        shutdown: shutdown.clone(),
        metrics: metrics.clone(),
        gateway: serving.gateway().cloned(),
        audience,
    };
    check_login_audience(serving, &*authenticator)?;
    let mut options =
        HttpServerOptions { authenticator, protected_resource, tls, ..http_options(args, address.ip()) };
    session_store::attach_sessions(serving.store.as_ref(), &mut options);
    let (credential, public_url) = (client_credential(table.is_some(), has_auth), public_url(&options));
    set_page_origin(serving, public_url.as_deref());
    let console = HubConsole::new(serving, &*options.authenticator);
    let on_admin = AdminPages { probes: probes(ProbeAudience::Operators), console: &console };
    let admin = bind_admin(args, has_auth, host, on_admin, &options).await?;
    let warning = options.warning(address.ip());
    let secrets = SecretFiles::new(args, tokens, table, &options, host, serving.store.as_ref());
    let endpoint = host.http_service(options);
    if let Some(gateway) = serving.gateway() {
        gateway.set_sessions(SessionSource::Http(endpoint.clone()));
    }
    let service = EndpointWithProbes {
        endpoint: endpoint.clone(),
        probes: probes(probe_audience(args, has_auth, address.ip())),
        logins: serving.logins.clone(),
        console: console.on_main(address, !args.tls.is_empty()),
    };
    publish_address(args, port_file.as_ref(), address)?;
    announce(serving, address, (credential, public_url.as_deref()), warning, &console);
    let keeping = serving.start_backend().await;
    let drained = tokio::select! {
        never = shutdown.handle_signals(signals, args.drain_delay, || serving.begin_shutdown()) => match never {},
        never = serve_admin(admin, edge.grace) => match never {},
        never = secrets.follow(hangups) => match never {},
        never = keeping => match never {},
        drained = http::serve(listener, &endpoint, service, edge.grace) => drained,
    };
    super::exit_result(shutdown.forced_by(), aborted_calls(drained)?, edge.grace)
}

/// Returns how many calls were aborted when the server ended.
fn aborted_calls(drained: io::Result<DrainOutcome>) -> Result<usize, CliFailure> {
    match drained {
        Ok(DrainOutcome::Cleanly) => Ok(0),
        Ok(DrainOutcome::Aborted(calls)) => Ok(calls),
        Err(error) => Err(CliFailure::new(ExitReason::Failed, format!("the transport failed: {error}"))),
    }
}

/// Writes the address to a descriptor that the parent process has open.
///
/// It is reopened by its path, since a descriptor number cannot be trusted to be valid; ours stays open until we exit.
#[cfg(unix)]
fn write_ready_fd(descriptor: u32, address: SocketAddr) -> Result<(), CliFailure> {
    use std::io::Write as _;
    let opened = std::fs::OpenOptions::new().append(true).open(format!("/dev/fd/{descriptor}"));
    let written = opened.and_then(|mut file| writeln!(file, "{address}"));
    written.map_err(|error| {
        CliFailure::configuration(format!("cannot write to descriptor {descriptor}: {error}"))
            .hint("use one that is open for writing, as in `--ready-fd 3 3>FILE`")
    })
}

/// Serves the connect pages at the public address, if it is known.
fn set_page_origin(serving: &PreparedService<'_>, public_url: Option<&str>) {
    if let (Some(logins), Some(url)) = (&serving.logins, public_url) {
        logins.set_base_url(&origin_of(url));
    }
}

fn client_credential(has_issuers: bool, has_auth: bool) -> BannerCredential {
    match (has_issuers, has_auth) {
        (true, _) => BannerCredential::AccessToken,
        (false, true) => BannerCredential::StaticToken,
        (false, false) => BannerCredential::None,
    }
}

/// Returns the public URL of the endpoint, if it is known.
fn public_url(options: &HttpServerOptions) -> Option<String> {
    let of_tokens = || options.authenticator.protected_resource();
    let resource = options.protected_resource.clone().map(Arc::new).or_else(of_tokens);
    resource.map(|resource| resource.resource().to_owned())
}

/// Refuses to serve several users with the logins of one: the tokens of one user must never serve another.
fn check_login_audience(
    serving: &PreparedService<'_>,
    authenticator: &dyn Authenticator,
) -> Result<(), CliFailure> {
    let is_for_one = |logins: &UserLogins| logins.audience() == LoginAudience::LocalUser;
    if serving.logins.as_ref().is_some_and(is_for_one) && authenticator.fixed_principal().is_none() {
        let message = "the hub has users, and their logins are not kept apart";
        return Err(CliFailure::new(ExitReason::Failed, message));
    }
    Ok(())
}

/// Passes the address on to the programs that wait for it.
fn publish_address(
    args: &HttpArgs,
    port_file: Option<&PortFile>,
    address: SocketAddr,
) -> Result<(), CliFailure> {
    if let Some(file) = port_file {
        file.publish(address).map_err(|error| write_failure(file.path(), &error))?;
    }
    #[cfg(unix)]
    if let Some(descriptor) = args.ready_fd {
        write_ready_fd(descriptor, address)?;
    }
    #[cfg(not(unix))]
    let _ = args;
    Ok(())
}

fn claim_port_file(path: &Path) -> Result<PortFile, CliFailure> {
    PortFile::claim(path).map_err(|error| write_failure(path, &error))
}

fn write_failure(path: &Path, error: &io::Error) -> CliFailure {
    CliFailure::configuration(format!("cannot write port file {}: {error}", path.display()))
        .hint("use a file in an existing folder that you can write to")
}

/// Looks up the addresses to listen on, and refuses those that would let strangers in.
fn permitted_addresses(
    args: &HttpArgs,
    has_auth: bool,
    option: &str,
    wanted: &ListenAddress,
) -> Result<Vec<SocketAddr>, CliFailure> {
    let addresses = wanted.resolve().map_err(|error| {
        CliFailure::configuration(format!("{wanted} is not an address of this machine: {error}"))
            .hint(format!("use `{option} :7411` for loopback, `{option} 0.0.0.0:7411` for all interfaces"))
    })?;
    let public = addresses.iter().find(|address| !address.ip().is_loopback());
    match public {
        Some(address) if !has_auth && !args.insecure_no_auth => Err(CliFailure::configuration(format!(
            "{address} is reachable from other machines, and no authentication is configured"
        ))
        .hint("use `--auth bearer:FILE`, a table [auth], or `--insecure-no-auth` to accept all clients")),
        _ => Ok(addresses),
    }
}

/// Returns the audience of the probes on the MCP port. On loopback it is the local user, unless a proxy
/// forwards other clients: then `--allow-host` or `--auth` is given.
fn probe_audience(args: &HttpArgs, has_auth: bool, ip: IpAddr) -> ProbeAudience {
    if is_loopback_only(args, has_auth, ip) { ProbeAudience::Operators } else { ProbeAudience::Public }
}

/// Reports whether only the local user can reach an address: on loopback, without an option that implies a
/// proxy for other clients.
fn is_loopback_only(args: &HttpArgs, has_auth: bool, ip: IpAddr) -> bool {
    ip.is_loopback() && args.allow_host.is_empty() && !has_auth
}

/// Returns how clients without credentials are isolated from each other.
pub(super) fn anonymous_clients(args: &HttpArgs, has_auth: bool, wanted: &ListenAddress) -> AnonymousClients {
    // One that cannot be looked up is refused later, with the reason.
    let addresses = wanted.resolve().unwrap_or_default();
    let is_private = !addresses.is_empty()
        && addresses.iter().all(|address| is_loopback_only(args, has_auth, address.ip()));
    if is_private { AnonymousClients::SingleUser } else { AnonymousClients::Isolated }
}

/// Listens on the `--admin` address, if given. If other machines can reach it, `--auth` applies to it as to the MCP
/// endpoint.
async fn bind_admin(
    args: &HttpArgs,
    has_auth: bool,
    host: &Host,
    pages: AdminPages<'_>,
    endpoint: &HttpServerOptions,
) -> Result<Option<AdminListener>, CliFailure> {
    let Some(wanted) = &args.admin else { return Ok(None) };
    let addresses = permitted_addresses(args, has_auth, "--admin", wanted)?;
    let (listener, address) = listen(wanted, "--admin", &addresses).await?;
    let mut options = HttpServerOptions::for_address(address.ip());
    options.probe_paths = [LIVENESS_PATH, READINESS_PATH, METRICS_PATH].map(str::to_owned).into();
    if !address.ip().is_loopback() {
        options.authenticator.clone_from(&endpoint.authenticator);
        options.tls.clone_from(&endpoint.tls);
        if !has_auth {
            tracing::warn!(
                "metrics and health on {address} need no authentication: every client that can reach it can read them"
            );
        }
    }
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    tracing::info!("metrics on {scheme}://{address}/metrics");
    let console = pages.console.on_admin(address, has_auth, options.tls.is_some());
    let probes = pages.probes;
    let guard = host.http_service(options);
    Ok(Some(AdminListener { listener, service: AdminService { guard, probes, console } }))
}

/// What the `--admin` address serves.
struct AdminPages<'a> {
    probes: HealthProbes,
    console: &'a HubConsole,
}

struct AdminListener {
    listener: TcpListener,
    service: AdminService,
}

/// Serves the probes alone, for as long as the server itself.
async fn serve_admin(admin: Option<AdminListener>, grace: Duration) -> Infallible {
    if let Some(AdminListener { listener, service }) = admin
        && let Err(error) = http::serve(listener, &service.guard.clone(), service, grace).await
    {
        tracing::error!(%error, "the metrics listener failed");
    }
    std::future::pending().await
}

async fn listen(
    wanted: &ListenAddress,
    option: &str,
    addresses: &[SocketAddr],
) -> Result<(TcpListener, SocketAddr), CliFailure> {
    let listener = TcpListener::bind(addresses).await;
    let bound = listener.and_then(|listener| listener.local_addr().map(|address| (listener, address)));
    bound.map_err(|error| listen_failure(wanted, option, &error))
}

fn listen_failure(address: &ListenAddress, option: &str, error: &io::Error) -> CliFailure {
    let failed = |what: String| CliFailure::new(ExitReason::Failed, what);
    match error.kind() {
        io::ErrorKind::AddrInUse => failed(format!("{address} is already in use"))
            .hint(format!("use another port with `{option} :PORT`, or any free one with `{option} :0`")),
        io::ErrorKind::PermissionDenied => failed(format!("no permission to listen on {address}: {error}"))
            .hint(format!("ports below 1024 are reserved; use another with `{option} :PORT`")),
        io::ErrorKind::AddrNotAvailable => failed(format!("{address} is not an address of this machine"))
            .hint(format!("use `{option} :7411` for loopback, `{option} 0.0.0.0:7411` for all interfaces")),
        _ => failed(format!("cannot listen on {address}: {error}")),
    }
}

fn http_options(args: &HttpArgs, ip: IpAddr) -> HttpServerOptions {
    let mut options = HttpServerOptions::for_address(ip);
    if !args.allow_host.is_empty() || ip.is_loopback() {
        // The loopback has more addresses than the two that are always allowed.
        let own = AllowList::loopback().and(SocketAddr::new(ip, 0).to_string().trim_end_matches(":0"));
        options.hosts = args.allow_host.iter().fold(own, AllowList::and);
    }
    options.origins = args.allow_origin.iter().fold(AllowList::loopback(), AllowList::and);
    options.path.clone_from(&args.path);
    let sse = SsePaths { stream: args.sse_path.clone(), messages: args.messages_path.clone() };
    options.legacy_sse = (!args.only_streamable).then_some(sse);
    options.websocket = (!args.only_streamable).then(|| args.ws_path.clone());
    options.cookie_sessions = args.cookie_sessions.then(CookieSessions::default);
    options.always_stream = args.always_sse;
    options.probe_paths = vec![LIVENESS_PATH.to_owned(), READINESS_PATH.to_owned()];
    options.session_limits = session_store::session_limits(args);
    options
}

/// Returns the scheme, host and port of a URL.
fn origin_of(url: &str) -> String {
    let end = url.find("://").map(|at| at + 3).and_then(|at| Some(at + url.get(at..)?.find('/')?));
    url.get(..end.unwrap_or(url.len())).unwrap_or(url).to_owned()
}

fn announce(
    serving: &PreparedService<'_>,
    address: SocketAddr,
    (credential, public_url): (BannerCredential, Option<&str>),
    warning: Option<&str>,
    console: &HubConsole,
) {
    let http = &serving.edge.http;
    let builtin = &*serving.description;
    let banner = Banner {
        address,
        path: &http.path,
        channels: (!http.only_streamable).then_some((&http.sse_path, &http.ws_path)),
        builtin,
        credential,
        public_url,
        tls: !http.tls.is_empty(),
    };
    if let Some(gateway) = serving.gateway() {
        gateway.set_url(banner.url(), address);
    }
    console.set_endpoint(&banner.url());
    if let Some(logins) = &serving.logins {
        // Unless the public address is known.
        logins.set_base_url(&origin_of(&banner.url()));
    }
    if serving.edge.log.stderr_is_json() {
        tracing::info!(url = banner.url(), builtin, "ready");
    } else {
        print_stderr(&banner.to_string());
        print_console_link(credential, console);
    }
    if http.state_key.is_empty() {
        tracing::debug!("no --state-key: calls that wait for input do not survive a restart");
    }
    if let Some(warning) = warning {
        tracing::warn!("{warning}");
    }
}

/// Prints a link to the console, which makes an operator of its reader: where clients are authenticated not into a log file,
/// which others may read.
fn print_console_link(credential: BannerCredential, console: &HubConsole) {
    let Some(link) = console.make_link() else { return };
    print_stderr(&match credential == BannerCredential::None || io::stderr().is_terminal() {
        true => format!("Console, opens once:\n  {link}\n\n"),
        false => "Console: `trunkline console` prints a link\n\n".to_owned(),
    });
}
