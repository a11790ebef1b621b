use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;
use tracing::level_filters::LevelFilter;
use trunkline_server::http::{self, DrainOutcome, HttpServerOptions, PortFile};
use trunkline_server::{Host, HostOptions, ServeError, Server, ServerTransport as _, Shutdown};
use trunkline_transport::process;

use super::Program;
use super::flags::{ListenMode, ServeRequest};
use crate::manifests::Manifests;
use crate::policy::Policy;

type ServeResult<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long calls may take to finish when the server shuts down.
const SHUTDOWN_GRACE: std::time::Duration = std::time::Duration::from_secs(10);

/// Serves a program until it is shut down.
///
/// # Errors
/// Returns a message for the user.
pub(super) fn serve(program: &Program, request: ServeRequest) -> ServeResult {
    init_logging(request.listen);
    let (listen, port_file) = (request.listen, request.port_file.clone());
    let program = apply_request(program.clone(), request)?;
    if listen == ListenMode::List {
        return print_decisions(&program);
    }
    let server = program.server()?;
    // On a thread of its own, since the program may run within a tokio runtime, where another cannot be started.
    let served = std::thread::Builder::new()
        .name("mcp".to_owned())
        .spawn(move || run(&server, listen, port_file))?
        .join();
    served.unwrap_or_else(|_| Err("the server has panicked".into()))
}

/// Logs to standard error, unless the program has a logger of its own.
fn init_logging(listen: ListenMode) {
    let level = if listen == ListenMode::Stdio { LevelFilter::WARN } else { LevelFilter::INFO };
    let _ =
        tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false).try_init();
}

/// Prints every command, its tool, and the deciding rule.
fn print_decisions(program: &Program) -> ServeResult {
    let mut out = io::stdout().lock();
    for (tool, command, decision) in program.decisions()? {
        writeln!(out, "{tool}\t{command}\t{decision}")?;
    }
    Ok(())
}

/// Applies the serve flags to the author's options.
fn apply_request(mut program: Program, request: ServeRequest) -> ServeResult<Program> {
    program.exposure.prefix = request.prefix;
    if let Some(path) = request.policy {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("policy {} cannot be read: {error}", path.display()))?;
        let policy: Policy = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
        // Commands that the author denies stay denied, whatever the operator allows.
        program.policy = program.policy.intersect(policy);
    }
    if !request.resource_globs.is_empty() {
        program = program.manifests(Manifests::new(request.resource_globs));
    }
    Ok(if request.golem_errors { program.golem_errors() } else { program })
}

fn run(server: &Server, listen: ListenMode, port_file: Option<std::path::PathBuf>) -> ServeResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let host = server.host(HostOptions::default())?;
        let signals = follow_signals(host.shutdown().clone())?;
        let served = async {
            match listen {
                ListenMode::Stdio | ListenMode::List => serve_stdio(&host).await,
                ListenMode::Port(port) => serve_http(&host, port, port_file).await,
            }
        };
        let served = tokio::select! {
            never = signals => never,
            served = served => served,
        };
        process::wait_for_background_exits().await;
        served
    });
    // A thread may block in a read of standard input that cannot be interrupted; shutdown must not wait for it.
    runtime.shutdown_background();
    served
}

async fn serve_stdio(host: &Host) -> ServeResult {
    if io::stdin().is_terminal() {
        print_line(
            "serving standard input, one JSON-RPC message a line; with =PORT it is HTTP on this machine",
        );
    }
    Ok(trunkline_server::stdio().grace(SHUTDOWN_GRACE).serve(host.clone()).await?)
}

async fn serve_http(host: &Host, port: u16, port_file: Option<std::path::PathBuf>) -> ServeResult {
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(wanted)
        .await
        .map_err(|cause| ServeError::Listen { address: wanted.to_string(), cause })?;
    let address = listener.local_addr()?;
    let port_file = port_file.map(PortFile::claim).transpose()?;
    // The scripts of golem's server parse every response as an event stream.
    let options = HttpServerOptions { always_stream: true, ..HttpServerOptions::for_address(address.ip()) };
    let ready = format!("MCP server on http://{address}{}", options.path);
    let endpoint = host.http_service(options);
    if let Some(file) = &port_file {
        file.publish(address)?;
    }
    print_line(&ready);
    match http::serve(listener, &endpoint, endpoint.clone(), SHUTDOWN_GRACE).await? {
        DrainOutcome::Cleanly => Ok(()),
        DrainOutcome::Aborted(calls) => Err(ServeError::Aborted(calls).into()),
    }
}

/// Drains at the first termination signal, and stops at the second. It never returns.
#[cfg(unix)]
fn follow_signals(shutdown: Shutdown) -> ServeResult<impl Future<Output = ServeResult>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        for end in [Shutdown::drain, Shutdown::stop] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            end(&shutdown);
        }
        std::future::pending().await
    })
}

#[cfg(not(unix))]
fn follow_signals(shutdown: Shutdown) -> ServeResult<impl Future<Output = ServeResult>> {
    Ok(async move {
        for end in [Shutdown::drain, Shutdown::stop] {
            if tokio::signal::ctrl_c().await.is_ok() {
                end(&shutdown);
            }
        }
        std::future::pending().await
    })
}

/// Prints a line to standard error.
fn print_line(line: &str) {
    // Unlike `eprintln!`, this does not panic if standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}
