//! `cargo xtask morning`: a folder with an `mcp.json`, a hub started there without flags, four official clients that work
//! at the same time, and somebody who kills, switches, adds, edits and removes servers meanwhile.
#![allow(clippy::indexing_slicing, reason = "a member that a JSON value lacks is null")]

mod client;
mod hub;
mod work;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use self::client::Client;
use self::hub::{Hub, is_alive, until};
use self::work::{Tally, jobs, remember, repository, work};
use super::clients;
use super::servers::{node, npm};
use crate::args::Args;
use crate::table::Table;
use crate::tools::{self, Tools};
use crate::{Outcome, fixture, run};

/// The clients, each in the mode that it is best at.
const CLIENTS: &[(&str, &str)] =
    &[("python-v1", "legacy"), ("python-v2", "2026-07-28"), ("node-v1", "legacy"), ("node-v2", "auto")];

/// The servers of the folder.
const SERVERS: &[&str] = &["everything", "filesystem", "memory", "time", "git", "modern"];

pub(crate) fn command(args: Args) -> Outcome {
    args.finish()?;
    let tools = tools::install()?;
    super::copy_scripts(&tools)?;
    let pypi = tools::install_servers()?;
    let binary = fixture::build_of("trunkline-cli", "trunkline")?;
    let results = fixture::results_folder("morning")?;
    let scratch = results.join("folder");
    prepare(&scratch)?;
    let servers = servers(&tools, &pypi, &scratch);
    fs::write(scratch.join("mcp.json"), format!("{:#}\n", json!({ "mcpServers": servers })))?;

    let hub = Hub::start(&binary, &scratch, &results.join("hub.log"))?;
    let clients = start_clients(&tools, &results)?;
    let tally = Tally::default();
    let stop = AtomicBool::new(false);
    let story = std::thread::scope(|scope| {
        let story = begin(&clients).and_then(|()| {
            for client in &clients {
                scope.spawn(|| work(client, &scratch, &tally, &stop));
            }
            disturb(&hub, &clients, &tally, &scratch, &pypi)
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
fn prepare(scratch: &Path) -> Outcome {
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
fn servers(tools: &Tools, pypi: &Path, scratch: &Path) -> Value {
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

fn start_clients(tools: &Tools, results: &Path) -> Outcome<Vec<Client>> {
    let start = |(name, mode): &(&'static str, &str)| {
        let mut command = clients::told(tools, name, mode, hub::URL)?;
        command.stderr(fs::File::create(results.join(format!("{name}.log")))?);
        Client::start(name, &mut command)
    };
    CLIENTS.iter().map(start).collect()
}

/// Sees that everybody sees everything, and lets the servers know the clients.
fn begin(clients: &[Client]) -> Outcome {
    for client in clients {
        for server in SERVERS {
            shows(client, server, true)?;
        }
        remember(client)?;
    }
    println!("four clients see the tools of six servers");
    Ok(())
}

/// Does to the hub what happens to one in a morning, and waits each time until all clients are content again.
fn disturb(hub: &Hub, clients: &[Client], tally: &Tally, scratch: &Path, pypi: &Path) -> Outcome {
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
        works(clients, tally, scratch, server)?;
        println!("{server} was killed and works again (processes: {})", killed.len());
    }

    hub.tell(&["disable", "time"])?;
    all(clients, "time", false)?;
    hub.tell(&["enable", "time"])?;
    all(clients, "time", true)?;
    works(clients, tally, scratch, "time")?;
    println!("time was switched off and on");

    let clock = pypi.join("mcp-server-time").display().to_string();
    hub.tell(&["add", "clock", "--", &clock, "--local-timezone", "Asia/Tokyo"])?;
    all(clients, "clock", true)?;
    println!("clock was added");

    let others = hub.children("server-memory");
    let before = hub.children("mcp-server-git");
    hub.edit(|file| file["mcpServers"]["git"]["args"] = json!(["--verbose"]))?;
    until("git runs as edited", || Ok(!hub.children("mcp-server-git --verbose").is_empty()))?;
    works(clients, tally, scratch, "git")?;
    until("the old git has ended", || Ok(!before.iter().any(|id| is_alive(*id))))?;
    if hub.children("server-memory") != others {
        return Err("a change of git started memory anew".into());
    }
    println!("git was edited, and restarted alone");

    let sound = hub.spoil()?;
    until("the hub complains of a spoiled file", || hub.has_said("what was before goes on"))?;
    for server in ["git", "time", "clock"] {
        all(clients, server, true)?;
    }
    hub.restore(&sound)?;
    println!("a spoiled file changed nothing");

    hub.tell(&["remove", "clock"])?;
    all(clients, "clock", false)?;
    hub.edit(|file| drop(file["mcpServers"].as_object_mut().and_then(|all| all.remove("filesystem"))))?;
    all(clients, "filesystem", false)?;
    until("filesystem has ended", || Ok(hub.children("server-filesystem").is_empty()))?;
    println!("clock and filesystem were removed");
    SERVERS
        .iter()
        .filter(|server| **server != "filesystem")
        .try_for_each(|server| works(clients, tally, scratch, server))
}

/// Waits until every client shows, or no longer shows, the tools of a server.
fn all(clients: &[Client], server: &str, shown: bool) -> Outcome {
    clients.iter().try_for_each(|client| shows(client, server, shown))
}

fn shows(client: &Client, server: &str, shown: bool) -> Outcome {
    let prefix = format!("{server}__");
    let how = if shown { "shows" } else { "no longer shows" };
    until(&format!("{} {how} the tools of {server}", client.name), || {
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
fn works(clients: &[Client], tally: &Tally, scratch: &Path, server: &str) -> Outcome {
    let mut round = 1_000_000;
    clients.iter().try_for_each(|client| {
        until(&format!("{server} answers {}", client.name), || {
            round += 1;
            let job = jobs(client.name, round, scratch).into_iter().find(|job| job.server == server);
            Ok(job.is_some_and(|job| tally.run(client, &job)))
        })
    })
}

fn report(tally: &Tally) {
    let mut table = Table::new(&["client", "server", "answered", "refused"]);
    for ((client, server), count) in tally.counts() {
        table.row(vec![client.into(), server.into(), count.answered.to_string(), count.refused.to_string()]);
    }
    print!("\n{}", table.render());
}

/// Nothing may be answered wrongly, and every server has to have answered every client.
fn judge(tally: &Tally) -> Outcome {
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
