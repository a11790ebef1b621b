//! The servers behind the hub, and the files that configure it.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::super::servers::{npm, wait_until_listening};
use crate::run::{self, BackgroundProcess};
use crate::tools::{self, InstalledTools};
use crate::{TaskResult, fixture, root};

/// The configuration files, and the servers that hubs reach over HTTP.
pub(super) struct HubUpstreams {
    /// Every server, and one that hangs.
    pub(super) full: PathBuf,
    /// Two servers that start quickly.
    pub(super) small: PathBuf,
    /// One server that lists other tools in each era.
    pub(super) eras: PathBuf,
    _listening: Vec<BackgroundProcess>,
}

/// A server that every hub starts over pipes, and that also runs once as a process that listens.
struct HubUpstream {
    name: &'static str,
    command: Vec<PathBuf>,
    http: Option<HttpKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HttpKind {
    StreamableHttp,
    /// HTTP+SSE, the transport of the first revision.
    Sse,
}

use HttpKind::{Sse, StreamableHttp};

/// The servers of the small configuration.
const SMALL: [&str; 2] = ["everything", "rmcp"];

impl HttpKind {
    /// Returns the type in the configuration, which is also the end of the server's name.
    fn name(self) -> &'static str {
        match self {
            StreamableHttp => "http",
            Sse => "sse",
        }
    }

    fn path(self) -> &'static str {
        match self {
            StreamableHttp => "/mcp",
            Sse => "/sse",
        }
    }
}

impl HubUpstreams {
    /// Starts the servers that listen, waits for them, and writes the files.
    pub(super) fn start(tools: &InstalledTools, folder: &Path) -> TaskResult<Self> {
        let mut entries = Map::new();
        let mut started = Vec::new();
        for upstream in upstreams(tools)? {
            let (program, arguments) = upstream.command.split_first().ok_or("a server without a program")?;
            if let Some(kind) = upstream.http {
                let name = format!("{}-{}", upstream.name, kind.name());
                let address = fixture::free_address()?;
                let log = folder.join(format!("{name}.log"));
                started.push((start(program, arguments, address, &log)?, address, log));
                let url = format!("http://{address}{}", kind.path());
                entries.insert(name, json!({ "type": kind.name(), "url": url }));
            }
            entries.insert(upstream.name.to_owned(), json!({ "command": program, "args": arguments }));
        }
        for (running, address, log) in &mut started {
            wait_until_listening(running, *address)
                .map_err(|error| format!("a server did not start: {error}; see {}", log.display()))?;
        }
        let is_small = |(name, _): &(&String, &Value)| SMALL.contains(&name.as_str());
        let small = entries.iter().filter(is_small).map(|(name, entry)| (name.clone(), entry.clone()));
        Ok(Self {
            small: write(&folder.join("small.json"), &small.collect())?,
            eras: write(&folder.join("eras.json"), &two_eras(tools))?,
            full: write(&folder.join("full.json"), &entries)?,
            _listening: started.into_iter().map(|(running, ..)| running).collect(),
        })
    }
}

/// Lists the servers; `interop/python/hub.py` has the same names.
fn upstreams(tools: &InstalledTools) -> TaskResult<Vec<HubUpstream>> {
    let server = |name, command, http| HubUpstream { name, command, http };
    let python = |program: &Path, script: &str| {
        // Nothing is to be written beside the scripts.
        vec![program.to_path_buf(), "-B".into(), root().join("interop/python").join(script)]
    };
    let python_1_2 = tools::install_mcp_1_2()?;
    Ok(vec![
        server("everything", npm(tools, "server-everything"), None),
        server("fastmcp-2", python(&tools.python_v1, "server_fastmcp.py"), Some(StreamableHttp)),
        server("fastmcp-4", python(&tools.python_agent, "server_fastmcp.py"), Some(StreamableHttp)),
        server("rmcp", vec![fixture::build_rmcp("rmcp-server")?], Some(StreamableHttp)),
        server("mcp-1-2", python(&python_1_2, "server_mcp_1_2.py"), Some(Sse)),
        // It reads nothing, writes nothing, and does not end.
        server("hanging", vec!["sleep".into(), "1000000".into()], None),
    ])
}

/// Describes a proxy on `fastmcp` 4, which has what the server behind it has in the legacy era alone.
fn two_eras(tools: &InstalledTools) -> Map<String, Value> {
    let script = |name: &str| root().join("interop/python").join(name);
    let (proxy, server) = (script("server_fastmcp_proxy.py"), script("server_fastmcp.py"));
    let arguments = json!(["-B", proxy, &tools.python_v1, "-B", server]);
    let entry = json!({ "command": &tools.python_agent, "args": arguments });
    Map::from_iter([("proxy".to_owned(), entry)])
}

/// Starts a server that is to listen at an address.
fn start(
    program: &Path,
    arguments: &[PathBuf],
    address: SocketAddr,
    log: &Path,
) -> TaskResult<BackgroundProcess> {
    let output = File::create(log)?;
    let mut command = run::command(program);
    command.args(arguments).args(["--http", &address.port().to_string()]);
    command.stdout(output.try_clone()?).stderr(output);
    BackgroundProcess::start(&mut command)
}

fn write(path: &Path, servers: &Map<String, Value>) -> TaskResult<PathBuf> {
    fs::write(path, format!("{:#}\n", json!({ "mcpServers": servers })))?;
    Ok(path.to_path_buf())
}
