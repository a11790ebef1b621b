//! `cargo xtask smoke`: a folder with an `mcp.json`, a hub started there without flags, four official clients that work
//! at the same time, and an operator that kills, switches, adds, edits and removes servers meanwhile.
#![allow(clippy::indexing_slicing, reason = "a member that a JSON value lacks is null")]

pub(super) mod client;
mod hub;
mod work;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use self::client::ControlledClient;
use self::hub::{SmokeHub, is_alive, wait_until};
use self::work::{CallResults, calls_of_round, repository, run_calls, seed_memory};
use super::servers::{node, npm};
use crate::args::Args;
use crate::table::TextTable;
use crate::tools::{self, InstalledTools};
use crate::{TaskResult, fixture, run};

/// The clients, each in the mode that it is best at.
const CLIENTS: &[(&str, &str)] =
    &[("python-v1", "legacy"), ("python-v2", "2026-07-28"), ("node-v1", "legacy"), ("node-v2", "auto")];

/// The servers of the folder.
const SERVERS: &[&str] = &["everything", "filesystem", "memory", "time", "git", "modern"];

pub(crate) fn command(args: Args) -> TaskResult {
    args.finish()?;
    let tools = tools::install()?;
    super::copy_scripts(&tools)?;
    let pypi = tools::install_servers()?;
    let binary = fixture::build_of("trunkline-cli", "trunkline")?;
    let results = fixture::results_folder("smoke")?;
    let scratch = results.join("folder");
    prepare(&scratch)?;
    let servers = servers(&tools, &pypi, &scratch);
    fs::write(scratch.join("mcp.json"), format!("{:#}\n", json!({ "mcpServers": servers })))?;

    let hub = SmokeHub::start(&binary, &scratch, &results.join("hub.log"))?;
    let clients = start_clients(&tools, &hub.url(), &results)?;
    let tally = CallResults::default();
    let stop = AtomicBool::new(false);
    let story = std::thread::scope(|scope| {
        let story = check_all_tools(&clients).and_then(|()| {
            for client in &clients {
                scope.spawn(|| run_calls(client, &scratch, &tally, &stop));
            }
            disrupt(&hub, &clients, &tally, &scratch, &pypi)
        });
        stop.store(true, Ordering::Relaxed);
        story
    });
    report(&tally);
    story?;
    drop(clients);
    let below = hub.descendants();
    hub.stop()?;
    if let Some(left) = below.iter().find(|id| is_alive(**id)) {
        return Err(format!("process {left} outlives the hub").into());
    }
    judge(&tally)
}

/// Makes the files that the servers work on, some for each client alone.
fn prepare(scratch: &Path) -> TaskResult {
    fs::create_dir_all(scratch.join("files"))?;
    for (client, _) in CLIENTS {
        fs::write(scratch.join("files").join(format!("{client}.txt")), format!("the note of {client}\n"))?;
        let repository = repository(scratch, client);
        run::run(run::command("git").args(["init", "--quiet"]).arg(&repository))?;
        fs::write(repository.join(format!("only-{client}.txt")), "")?;
    }
    Ok(())
}

/// Writes the servers the way people do.
fn servers(tools: &InstalledTools, pypi: &Path, scratch: &Path) -> Value {
    let entry = |words: Vec<PathBuf>| {
        let (command, arguments) =
            words.split_first().map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
        json!({ "command": command, "args": arguments })
    };
    let with = |mut words: Vec<PathBuf>, more: &[PathBuf]| {
        words.extend_from_slice(more);
        entry(words)
    };
    let mut memory = entry(npm(tools, "server-memory"));
    memory["env"] = json!({ "MEMORY_FILE_PATH": scratch.join("memory.jsonl") });
    json!({
        "everything": entry(npm(tools, "server-everything")),
        "filesystem": with(npm(tools, "server-filesystem"), &[scratch.join("files")]),
        "memory": memory,
        "time": entry(vec![pypi.join("mcp-server-time")]),
        "git": entry(vec![pypi.join("mcp-server-git")]),
        "modern": with(node(tools, "server-v2.mjs"), &["--modern-only".into()]),
    })
}

fn start_clients(tools: &InstalledTools, url: &str, results: &Path) -> TaskResult<Vec<ControlledClient>> {
    let start = |(name, mode): &(&'static str, &str)| {
        let log = fs::File::create(results.join(format!("{name}.log")))?;
        super::start_controlled_client(tools, name, mode, url, log)
    };
    CLIENTS.iter().map(start).collect()
}

/// Checks that every client sees every server, and lets the servers know the clients.
fn check_all_tools(clients: &[ControlledClient]) -> TaskResult {
    for client in clients {
        for server in SERVERS {
            wait_for_client_tools(client, server, true)?;
        }
        seed_memory(client)?;
    }
    println!("four clients see the tools of six servers");
    Ok(())
}

/// Changes the servers as a user would, and waits each time until all clients are content again.
fn disrupt(
    hub: &SmokeHub,
    clients: &[ControlledClient],
    tally: &CallResults,
    scratch: &Path,
    pypi: &Path,
) -> TaskResult {
    for (server, words) in
        [("memory", "server-memory"), ("everything", "server-everything"), ("modern", "--modern-only")]
    {
        let killed = hub.children(words);
        if killed.is_empty() {
            return Err(format!("no process of {server} is running").into());
        }
        for id in &killed {
            run::run(run::command("kill").args(["-KILL", &id.to_string()]))?;
        }
        wait_for_answers(clients, tally, scratch, server)?;
        println!("{server} was killed and works again (processes: {})", killed.len());
    }

    hub.run_command(&["disable", "time"])?;
    wait_for_tools(clients, "time", false)?;
    hub.run_command(&["enable", "time"])?;
    wait_for_tools(clients, "time", true)?;
    wait_for_answers(clients, tally, scratch, "time")?;
    println!("time was switched off and on");

    let clock = pypi.join("mcp-server-time").display().to_string();
    hub.run_command(&["add", "clock", "--", &clock, "--local-timezone", "Asia/Tokyo"])?;
    wait_for_tools(clients, "clock", true)?;
    println!("clock was added");

    let others = hub.children("server-memory");
    let before = hub.children("mcp-server-git");
    hub.edit(|file| file["mcpServers"]["git"]["args"] = json!(["--verbose"]))?;
    wait_until("git runs as edited", || Ok(!hub.children("mcp-server-git --verbose").is_empty()))?;
    wait_for_answers(clients, tally, scratch, "git")?;
    wait_until("the old git has ended", || Ok(!before.iter().any(|id| is_alive(*id))))?;
    if hub.children("server-memory") != others {
        return Err("a change of git started memory anew".into());
    }
    println!("git was edited, and restarted alone");

    let sound = hub.corrupt_config()?;
    wait_until("the hub complains of a spoiled file", || hub.has_logged("keeping the previous one"))?;
    for server in ["git", "time", "clock"] {
        wait_for_tools(clients, server, true)?;
    }
    hub.restore(&sound)?;
    println!("a spoiled file changed nothing");

    hub.run_command(&["remove", "clock"])?;
    wait_for_tools(clients, "clock", false)?;
    hub.edit(|file| drop(file["mcpServers"].as_object_mut().and_then(|all| all.remove("filesystem"))))?;
    wait_for_tools(clients, "filesystem", false)?;
    wait_until("filesystem has ended", || Ok(hub.children("server-filesystem").is_empty()))?;
    println!("clock and filesystem were removed");
    SERVERS
        .iter()
        .filter(|server| **server != "filesystem")
        .try_for_each(|server| wait_for_answers(clients, tally, scratch, server))
}

/// Waits until every client shows, or no longer shows, the tools of a server.
fn wait_for_tools(clients: &[ControlledClient], server: &str, shown: bool) -> TaskResult {
    clients.iter().try_for_each(|client| wait_for_client_tools(client, server, shown))
}

fn wait_for_client_tools(client: &ControlledClient, server: &str, shown: bool) -> TaskResult {
    let prefix = format!("{server}__");
    let how = if shown { "shows" } else { "no longer shows" };
    wait_until(&format!("{} {how} the tools of {server}", client.name), || {
        let tools = client.tools()?;
        // Whatever happens to a server, the others are there at every moment.
        for kept in ["modern", "memory"].iter().filter(|kept| **kept != server) {
            if !tools.iter().any(|tool| tool.starts_with(&format!("{kept}__"))) {
                return Err(format!("{} shows no tools of {kept} meanwhile", client.name).into());
            }
        }
        Ok(tools.iter().any(|tool| tool.starts_with(&prefix)) == shown)
    })
}

/// Waits until a server answers every client.
fn wait_for_answers(
    clients: &[ControlledClient],
    tally: &CallResults,
    scratch: &Path,
    server: &str,
) -> TaskResult {
    let mut round = 1_000_000;
    clients.iter().try_for_each(|client| {
        wait_until(&format!("{server} answers {}", client.name), || {
            round += 1;
            let job =
                calls_of_round(client.name, round, scratch).into_iter().find(|job| job.server == server);
            Ok(job.is_some_and(|job| tally.run(client, &job)))
        })
    })
}

fn report(tally: &CallResults) {
    let mut table = TextTable::new(&["client", "server", "answered", "refused"]);
    for ((client, server), count) in tally.counts() {
        table.row(vec![client.into(), server.into(), count.answered.to_string(), count.refused.to_string()]);
    }
    print!("\n{}", table.render());
}

/// Nothing may be answered wrongly, and every server has to have answered every client.
fn judge(tally: &CallResults) -> TaskResult {
    let faults = tally.faults();
    if !faults.is_empty() {
        let shown: Vec<_> = faults.iter().take(20).map(String::as_str).collect();
        return Err(format!("{} calls ended badly:\n{}", faults.len(), shown.join("\n")).into());
    }
    for (client, _) in CLIENTS {
        for server in SERVERS {
            if tally.counts().get(&(*client, *server)).is_none_or(|count| count.answered == 0) {
                return Err(format!("{server} never answered {client}").into());
            }
        }
    }
    Ok(())
}
