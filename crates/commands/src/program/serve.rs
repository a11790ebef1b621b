use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;
use tracing::level_filters::LevelFilter;
use trunkline_server::http::{self, Drained, HttpOptions, PortFile};
use trunkline_server::{Binding as _, Host, HostOptions, ServeError, Server, Shutdown};
use trunkline_transport::process;

use super::Program;
use super::flags::{Listen, Serving};
use crate::manifests::Manifests;
use crate::policy::Policy;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long calls may take to finish when the server shuts down.
const GRACE: std::time::Duration = std::time::Duration::from_secs(10);

/// Serves a program until it is told to end.
///
/// # Errors
/// A sentence for the person at the terminal.
pub(super) fn serve(program: &Program, serving: Serving) -> Outcome {
    log(serving.listen);
    let (listen, port_file) = (serving.listen, serving.port_file.clone());
    let program = set(program.clone(), serving)?;
    if listen == Listen::List {
        return list(&program);
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
fn log(listen: Listen) {
    let level = if listen == Listen::Stdio { LevelFilter::WARN } else { LevelFilter::INFO };
    let _ =
        tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false).try_init();
}

/// Prints every command, its tool, and the rule that shows or hides it.
fn list(program: &Program) -> Outcome {
    let mut out = io::stdout().lock();
    for (tool, command, decision) in program.decisions()? {
        writeln!(out, "{tool}\t{command}\t{decision}")?;
    }
    Ok(())
}

/// Puts what the flags say on top of what the program's author has set.
fn set(mut program: Program, serving: Serving) -> Outcome<Program> {
    program.exposure.prefix = serving.prefix;
    if let Some(path) = serving.policy {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("policy {} cannot be read: {error}", path.display()))?;
        let policy: Policy = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
        // What the author denies stays denied, whatever the operator allows.
        program.policy = program.policy.within(policy);
    }
    if !serving.resource_globs.is_empty() {
        program = program.manifests(Manifests::new(serving.resource_globs));
    }
    Ok(if serving.golem_errors { program.golem_errors() } else { program })
}

fn run(server: &Server, listen: Listen, port_file: Option<std::path::PathBuf>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let host = server.host(HostOptions::default())?;
        let signals = follow_signals(host.shutdown().clone())?;
        let served = async {
            match listen {
                Listen::Stdio | Listen::List => stdio(&host).await,
                Listen::Port(port) => on_port(&host, port, port_file).await,
            }
        };
        let served = tokio::select! {
            never = signals => never,
            served = served => served,
        };
        process::settled().await;
        served
    });
    // A thread may sit in a read of standard input that nothing can interrupt; leaving must not wait for it.
    runtime.shutdown_background();
    served
}

async fn stdio(host: &Host) -> Outcome {
    if io::stdin().is_terminal() {
        say("serving standard input, one JSON-RPC message a line; with =PORT it is HTTP on this machine");
    }
    Ok(trunkline_server::stdio().grace(GRACE).serve(host.clone()).await?)
}

async fn on_port(host: &Host, port: u16, port_file: Option<std::path::PathBuf>) -> Outcome {
    let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = TcpListener::bind(wanted)
        .await
        .map_err(|cause| ServeError::Listen { address: wanted.to_string(), cause })?;
    let address = listener.local_addr()?;
    let port_file = port_file.map(PortFile::claim).transpose()?;
    // The scripts that golem's server came with read every answer as an event.
    let options = HttpOptions { always_stream: true, ..HttpOptions::for_address(address.ip()) };
    let ready = format!("MCP server on http://{address}{}", options.path);
    let endpoint = host.http(options);
    if let Some(file) = &port_file {
        file.publish(address)?;
    }
    say(&ready);
    match http::serve(listener, &endpoint, endpoint.clone(), GRACE).await? {
        Drained::Cleanly => Ok(()),
        Drained::Aborted(calls) => Err(ServeError::Aborted(calls).into()),
    }
}

/// Drains at the first signal to end, and stops at the second. It never returns.
#[cfg(unix)]
fn follow_signals(shutdown: Shutdown) -> Outcome<impl Future<Output = Outcome>> {
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
fn follow_signals(shutdown: Shutdown) -> Outcome<impl Future<Output = Outcome>> {
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
fn say(line: &str) {
    // Unlike `eprintln!` this does not panic when the reader is gone.
    let _ = writeln!(io::stderr(), "{line}");
}
