//! `cargo xtask isolation`: anonymous clients of both eras call servers of others through a hub, on the loopback and as strangers, and
//! nothing of one client reaches another. In small, a test of the hub does the same with a scripted server.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::args::Args;
use crate::fixture::{self, FixtureServer};
use crate::interop::copy_scripts;
use crate::tools::{self, InstalledTools};
use crate::{TaskResult, root, run};

/// The calls of each of both runs.
const CALLS: usize = 50_000;

/// How long a hub may take to end all servers that it has started.
const END_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) fn command(mut args: Args) -> TaskResult {
    let calls = args.number().unwrap_or(CALLS);
    let is_release = args.flag("--release");
    // Another build of the hub, such as one without a rule, for which the run has to fail.
    let other_hub = args.value("--hub")?.map(PathBuf::from);
    args.finish()?;
    let tools = tools::install()?;
    copy_scripts(&tools)?;
    let build = |package: &str, binary: &str| match is_release {
        true => fixture::build_release(package, "--bin", binary),
        false => fixture::build_of(package, binary),
    };
    let hub = match other_hub {
        Some(hub) => hub,
        None => build("trunkline-cli", "trunkline")?,
    };
    run_calls(calls, &tools, hub, build("trunkline-interop", "isolation")?)
}

/// Makes so many calls as one user and as strangers each.
pub(crate) fn run_calls(calls: usize, tools: &InstalledTools, hub: PathBuf, clients: PathBuf) -> TaskResult {
    let folder = fixture::results_folder("isolation")?;
    let bed = IsolationBed { hub, clients, folder, servers: servers(tools) };
    for relation in [ClientRelation::OneUser, ClientRelation::Strangers] {
        bed.run(relation, calls)?;
    }
    Ok(())
}

/// Whether the clients are one user or strangers to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientRelation {
    OneUser,
    Strangers,
}

struct IsolationBed {
    hub: PathBuf,
    clients: PathBuf,
    folder: PathBuf,
    servers: Vec<(&'static str, Vec<PathBuf>)>,
}

impl IsolationBed {
    fn run(&self, relation: ClientRelation, calls: usize) -> TaskResult {
        let (name, flag) = match relation {
            ClientRelation::OneUser => ("loopback", "--local"),
            ClientRelation::Strangers => ("strangers", "--strangers"),
        };
        let home = self.folder.join(name);
        fs::create_dir_all(&home)?;
        let hub = self.start_hub(relation, &home)?;
        let names: Vec<&str> = self.servers.iter().map(|(name, _)| *name).collect();
        let mut clients = run::command(&self.clients);
        clients.args(["--url", &hub.url("http", "/mcp"), "--calls", &calls.to_string(), flag]);
        clients.arg("--scratch").arg(home.canonicalize()?.join("roots"));
        clients.args(["--servers", &names.join(",")]);
        let outcome = run::run(&mut clients);
        hub.stop(END_TIMEOUT)?;
        let starts = fs::read_to_string(home.join("hub.log"))?
            .lines()
            .filter(|line| line.contains("connected"))
            .count();
        println!("{name}: {starts} connections of the hub to {} servers", names.len());
        outcome
    }

    /// Starts a hub on the loopback; a name that it may be called by makes it one that a proxy stands before.
    fn start_hub(&self, relation: ClientRelation, home: &Path) -> TaskResult<FixtureServer> {
        let config = home.join("mcp.json");
        let entry = |command: &[PathBuf]| {
            command.split_first().map(|(program, arguments)| json!({ "command": program, "args": arguments }))
        };
        let servers =
            self.servers.iter().filter_map(|(name, command)| Some(((*name).to_owned(), entry(command)?)));
        fs::write(&config, json!({ "mcpServers": Value::Object(servers.collect()) }).to_string())?;
        let log = File::create(home.join("hub.log"))?;
        let mut command = run::command(&self.hub);
        command.env("HOME", home).env("XDG_STATE_HOME", home.join("state")).env_remove("XDG_RUNTIME_DIR");
        FixtureServer::start_by(|address| {
            command.args(["serve", "--trust", "--http", &address.to_string(), "--config"]).arg(&config);
            if relation == ClientRelation::Strangers {
                command.args(["--allow-host", "localhost"]);
            }
            command.stdout(std::process::Stdio::null()).stderr(log);
            command
        })
    }
}

fn servers(tools: &InstalledTools) -> Vec<(&'static str, Vec<PathBuf>)> {
    let examiner = root().join("interop/python/server_examiner.py");
    // Nothing is to be written beside the scripts.
    let python = |program: &Path| vec![program.to_path_buf(), "-B".into(), examiner.clone()];
    let mut on_mcp = python(&tools.python_v1);
    on_mcp.push("--mcp".into());
    let files = tools.node_folder.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    vec![
        ("fastmcp-2", python(&tools.python_v1)),
        ("fastmcp-4", python(&tools.python_agent)),
        ("mcp-1", on_mcp),
        ("npm-sdk-1", vec![tools.node.clone(), tools.node_folder.join("server-examiner.mjs")]),
        ("filesystem", vec![tools.node.clone(), files]),
    ]
}
