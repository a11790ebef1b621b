//! `cargo xtask replicas`: three replicas that share sessions in Redis, behind a balancer that sends each request to the next one, under the
//! official suite, the clients of others, and load while replicas are killed and Redis fails.

mod bed;
mod client;
mod connection;
mod faults;
mod history;
mod listener;
mod load;
mod messages;
mod packages;
mod record;
mod sdk_clients;

use std::path::PathBuf;
use std::time::Duration;

use self::bed::{BalancerKind, ReplicaBed, ReplicaKind, ReplicaPrograms};
use self::load::LoadPlan;
use self::sdk_clients::SdkClients;
use crate::args::Args;
use crate::{TaskResult, conformance, fixture, interop, tools};

/// The calls of a run, the clients that make them, and the time between two faults.
const CALLS: usize = 100_000;
const CLIENTS: usize = 24;
const FAULT_INTERVAL: Duration = Duration::from_secs(5);

/// The same for the short form in the tests.
const SHORT_CALLS: usize = 3_000;
const SHORT_CLIENTS: usize = 8;
const SHORT_INTERVAL: Duration = Duration::from_secs(2);

/// The settings of the runs: a server and a hub, and each balancer.
const SETTINGS: [(&str, ReplicaKind, BalancerKind); 3] = [
    ("servers behind nginx", ReplicaKind::Server, BalancerKind::Nginx),
    ("hubs behind nginx", ReplicaKind::Hub, BalancerKind::Nginx),
    ("hubs behind haproxy", ReplicaKind::Hub, BalancerKind::HaProxy),
];

pub(crate) fn command(mut args: Args) -> TaskResult {
    let calls = args.number().unwrap_or(CALLS);
    let is_release = args.flag("--release");
    let only = args.value("--only")?.unwrap_or_default();
    // Programs that are built already, such as those to be released.
    let built = args.value("--programs")?.map(PathBuf::from);
    let interval = match args.value("--every")? {
        Some(seconds) => Duration::from_secs(seconds.parse()?),
        None => FAULT_INTERVAL,
    };
    let (is_load, is_suites) = (args.flag("--load"), args.flag("--suites"));
    args.finish()?;
    packages::install()?;
    let programs = match built {
        Some(folder) => {
            ReplicaPrograms { server: folder.join("everything-server"), hub: folder.join("trunkline") }
        }
        None => build(is_release)?,
    };
    let mut failed = Vec::new();
    for (name, kind, balancer) in SETTINGS.into_iter().filter(|(name, ..)| name.contains(&only)) {
        let folder = fixture::results_folder(&format!("replicas/{}", name.replace(' ', "-")))?;
        println!("== {name}");
        let mut bed = ReplicaBed::start(&programs, kind, balancer, &folder)?;
        if !is_load {
            failed.extend(run_suites(&bed, kind, name).err().map(|error| error.to_string()));
        }
        if !is_suites {
            let plan = LoadPlan { calls, clients: CLIENTS, fault_interval: Some(interval) };
            let tools = tools::install()?;
            interop::copy_scripts(&tools)?;
            let clients = SdkClients::start(&tools, &bed.url(), &folder)?;
            let outcome = load::run(&mut bed, plan, Some(clients)).and_then(|result| result.conclude(name));
            failed.extend(outcome.err().map(|error| error.to_string()));
        }
    }
    conclude(&failed)
}

/// Runs the short form: every setting under load and faults, without the suites.
pub(crate) fn short() -> TaskResult {
    packages::install()?;
    let programs = build(false)?;
    let mut failed = Vec::new();
    for (name, kind, balancer) in SETTINGS {
        let folder = fixture::results_folder(&format!("replicas/short-{}", name.replace(' ', "-")))?;
        let mut bed = ReplicaBed::start(&programs, kind, balancer, &folder)?;
        let plan =
            LoadPlan { calls: SHORT_CALLS, clients: SHORT_CLIENTS, fault_interval: Some(SHORT_INTERVAL) };
        let outcome = load::run(&mut bed, plan, None).and_then(|result| result.conclude(name));
        failed.extend(outcome.err().map(|error| error.to_string()));
    }
    conclude(&failed)
}

fn conclude(failed: &[String]) -> TaskResult {
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}

fn build(is_release: bool) -> TaskResult<ReplicaPrograms> {
    let build = |package: &str, binary: &str| match is_release {
        true => fixture::build_release(package, "--bin", binary),
        false => fixture::build_of(package, binary),
    };
    Ok(ReplicaPrograms {
        server: build("trunkline-conformance", "everything-server")?,
        hub: build("trunkline-cli", "trunkline")?,
    })
}

/// Runs the official suite and the clients of the official SDKs through the balancer, while nothing fails.
fn run_suites(bed: &ReplicaBed, kind: ReplicaKind, name: &str) -> TaskResult {
    let tools = tools::install()?;
    let exempt: &[&str] = match kind {
        // Each of these servers adds and removes a tool of its own, so that their lists differ.
        ReplicaKind::Server => &["tools-list-deterministic-order"],
        ReplicaKind::Hub => &[],
    };
    let complaints = conformance::judge_server(&tools, bed.url(), exempt)?;
    let clients = interop::run_clients(&tools, bed.url(), &format!("replicas-{}", name.replace(' ', "-")))?;
    match (complaints, clients.as_slice()) {
        (0, []) => Ok(()),
        _ => Err(format!(
            "{name}: the suite has {complaints} complaints; clients that are not content: {}",
            clients.join(", ")
        )
        .into()),
    }
}
