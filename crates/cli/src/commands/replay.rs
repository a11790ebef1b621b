use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use serde_json::json;
use tokio::net::TcpListener;
use trunkline_server::http::{self, HttpServerOptions};
use trunkline_server::{Host, HostOptions, ServerTransport as _, stdio};

use crate::connect::{
    AnswerArgs, ConnectArgs, TargetArgs, in_runtime, print_stdout, target_or_hub_help, with_session,
};
use crate::exit::{CliFailure, ExitReason, print_stderr};
use crate::replay::{IgnoredPaths, MockServer, Recording, compare_with_server, describe_event, event_line};
use crate::signals::Signals;
use crate::values::ListenAddress;

/// How long calls may take when the mock server ends.
const GRACE: Duration = Duration::from_secs(5);

/// Show a recording, serve it as a mock, or compare it with a server
#[derive(Debug, Args)]
#[command(
    override_usage = "trunkline replay [OPTIONS] FILE\n       trunkline replay [OPTIONS] FILE --serve [--http ADDRESS]\n       trunkline replay [OPTIONS] FILE --against [TARGET]\n       trunkline replay [OPTIONS] FILE --against -- COMMAND [ARG]...",
    after_help = target_or_hub_help(
        "With --against, the recorded requests are sent to TARGET again. Exits with 1 if\n\
an answer differs. See `docs/record.md`.\n\n\
Examples:\n  trunkline replay session.jsonl\n  trunkline replay session.jsonl --serve\n  \
trunkline replay session.jsonl --against http://127.0.0.1:7411/mcp\n  \
trunkline replay session.jsonl --server git --against -- uvx mcp-server-git"
    )
)]
pub(crate) struct ReplayArgs {
    /// Record file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Answer as recorded, over stdin and stdout
    #[arg(long, conflicts_with = "against")]
    serve: bool,
    /// Serve over HTTP instead, such as on 127.0.0.1:7412
    #[arg(long, value_name = "ADDRESS", requires = "serve")]
    http: Option<ListenAddress>,
    /// Send the recorded requests to TARGET and compare
    #[arg(long)]
    against: bool,
    /// Use what one server received and answered, instead
    /// of what clients saw of the hub
    #[arg(verbatim_doc_comment, long, value_name = "NAME")]
    server: Option<String>,
    /// Leave out a member of results when comparing, such as
    /// content.*.text; repeatable
    #[arg(verbatim_doc_comment, long, value_name = "PATH", requires = "against")]
    ignore: Vec<String>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    connect: ConnectArgs,
}

/// Shows a record file, serves it, or compares it with a server.
///
/// # Errors
/// The file is no record file, the server cannot be reached, or an answer differs.
pub(crate) fn run(args: &ReplayArgs) -> Result<(), CliFailure> {
    run_command(args).map_err(|failure| failure.with_json(args.connect.json))
}

fn run_command(args: &ReplayArgs) -> Result<(), CliFailure> {
    if let (false, Some(word)) = (args.against, args.target.words.first()) {
        return Err(CliFailure::new(ExitReason::Usage, format!("unexpected argument `{word}`"))
            .hint("a TARGET follows `--against`"));
    }
    let recording = Recording::read(&args.file)?;
    if args.against {
        compare(args, &recording)
    } else if args.serve {
        in_runtime(args.connect.json, async |signals| serve(args, &recording, signals).await)
    } else {
        show(args, &recording)
    }
}

fn show(args: &ReplayArgs, recording: &Recording) -> Result<(), CliFailure> {
    if args.connect.json {
        let events: Vec<_> = recording.events.iter().map(event_line).collect();
        return print_stdout(&format!("{}\n", json!({ "header": recording.header, "events": events })));
    }
    let header = &recording.header;
    print_stderr(&format!(
        "{} events, recorded by trunkline {} from {} on\n",
        recording.events.len(),
        crate::terminal::escape_line(&header.version),
        crate::terminal::escape_line(&header.started)
    ));
    recording.events.iter().try_for_each(|event| print_stdout(&describe_event(event)))
}

fn compare(args: &ReplayArgs, recording: &Recording) -> Result<(), CliFailure> {
    let exchanges = recording.exchanges(&recording.wire(args.server.as_deref())?);
    let words = args.target.parse_or_hub(&args.connect)?;
    words.expect_end()?;
    let ignored = IgnoredPaths::new(&args.ignore);
    with_session(&args.connect, &AnswerArgs::default(), words.target, async |session| {
        let report = compare_with_server(&session.client, &exchanges, &ignored).await?;
        let text = match args.connect.json {
            true => format!("{}\n", report.to_json()),
            false => report.describe(["the recording", "the server"]),
        };
        print_stdout(&text)?;
        match report.has_differences() {
            true => Err(CliFailure::new(ExitReason::Failed, "the server answers differently")),
            false => Ok(()),
        }
    })
}

async fn serve(args: &ReplayArgs, recording: &Recording, signals: &mut Signals) -> Result<(), CliFailure> {
    let exchanges = recording.exchanges(&recording.wire(args.server.as_deref())?);
    let failed = |error: &dyn std::fmt::Display| CliFailure::new(ExitReason::Failed, error);
    let host =
        Host::new(MockServer::new(&exchanges), HostOptions::default()).map_err(|error| failed(&error))?;
    let serving = async {
        let Some(address) = &args.http else {
            return stdio().serve(host).await.map_err(|error| failed(&error));
        };
        let unusable =
            |error: std::io::Error| CliFailure::configuration(format!("cannot listen on {address}: {error}"));
        let addresses = address.resolve().map_err(unusable)?;
        let listener = TcpListener::bind(&*addresses).await.map_err(unusable)?;
        let bound = listener.local_addr().map_err(unusable)?;
        let endpoint = host.http_service(HttpServerOptions::for_address(bound.ip()));
        print_stderr(&format!("serving {} at http://{bound}/mcp\n", args.file.display()));
        let served = http::serve(listener, &endpoint, endpoint.clone(), GRACE).await;
        served.map(drop).map_err(|error| failed(&error))
    };
    tokio::select! {
        served = serving => served,
        _ = signals.next() => Ok(()),
    }
}
