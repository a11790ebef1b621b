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

/// Serves a program until it is told to end.
///
/// # Errors
/// A sentence for the person at the terminal.
pub(super) fn serve(program: &Program, serving: ServeRequest) -> ServeResult {
    init_logging(serving.listen);
    let (listen, port_file) = (serving.listen, serving.port_file.clone());
    let program = apply_request(program.clone(), serving)?;
    if listen == ListenMode::List {
        return print_decisions(&program);
    }
    let server = program.server()?;
    // A program that has a runtime of its own may not start another on the same thread.
    let served = std::thread::Builder::new()
        .name("mcp".to_owned())
        .spawn(move || run(&server, listen, port_file))?
        .join();
    served.unwrap_or_else(|_| Err("the server has panicked".into()))
}

/// Logs to standard error, unless the program has its own way.
fn init_logging(listen: ListenMode) {
    let level = if listen == ListenMode::Stdio { LevelFilter::WARN } else { LevelFilter::INFO };
    let _ =
        tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false).try_init();
}

/// Prints every command, its tool, and the rule that shows or hides it.
fn print_decisions(program: &Program) -> ServeResult {
    let mut out = io::stdout().lock();
    for (tool, command, decision) in program.decisions()? {
        writeln!(out, "{tool}\t{command}\t{decision}")?;
    }
    Ok(())
}

/// Puts what the flags say on top of what the program's author has set.
fn apply_request(mut program: Program, serving: ServeRequest) -> ServeResult<Program> {
    program.exposure.prefix = serving.prefix;
    if let Some(path) = serving.policy {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("policy {} cannot be read: {error}", path.display()))?;
        let policy: Policy = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
        // What the author denies stays denied, whatever the operator allows.
        program.policy = program.policy.intersect(policy);
    }
    if !serving.resource_globs.is_empty() {
        program = program.manifests(Manifests::new(serving.resource_globs));
    }
    Ok(if serving.golem_errors { program.golem_errors() } else { program })
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
    // A thread may sit in a read of standard input that nothing can interrupt; leaving must not wait for it.
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
    // The scripts that golem's server came with read every answer as an event.
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

/// Drains at the first signal to end, and stops at the second. It never returns.
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

/// Says a line to whoever started the server.
fn print_line(line: &str) {
    // Unlike `eprintln!` this does not panic when the reader is gone.
    let _ = writeln!(io::stderr(), "{line}");
}
