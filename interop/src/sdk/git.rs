//! `mcp-server-git`, with a repository of its own.

use std::path::Path;

use serde_json::{Value, json};
use trunkline_client::transport::Command;
use trunkline_client::transport::process::{RunLimits, run};

use super::{BOTH, Server, checks};
use crate::peer::Peer;
use crate::report::{Checked, has, require};

pub(super) const SERVER: Server = Server {
    name: "git",
    identity: "mcp-git",
    eras: BOTH,
    prepare: |_, _| Ok(()),
    checks: checks![repository, status, add_and_commit, log, elsewhere],
    legacy: &[],
    streams: &[],
    modern: &[],
    connects_often: true,
};

/// Makes a repository anew, with a file that is not in it yet.
pub(crate) async fn make_repository(scratch: &Path) -> Checked {
    let path = scratch.join("repository");
    if path.exists() {
        std::fs::remove_dir_all(&path)?;
    }
    std::fs::create_dir_all(&path)?;
    std::fs::create_dir_all(scratch.join("empty"))?;
    let steps: [&[&str]; 3] = [
        &["init", "--quiet", "--initial-branch", "main"],
        &["config", "user.name", "Ada"],
        &["config", "user.email", "ada@example.com"],
    ];
    for step in steps {
        let command = Command::new("git").arg("-C").arg(&path).args(step.iter().copied());
        let finished = run(&command, &RunLimits::default()).await?;
        require(finished.exit.success(), format_args!("{command}: {}", finished.stderr.text()))?;
    }
    std::fs::write(path.join("note.txt"), "first\n")?;
    Ok(())
}

/// Lays the ground of all other checks.
async fn repository(peer: &Peer<'_>) -> Checked {
    make_repository(&peer.options.scratch).await
}

async fn tell(peer: &Peer<'_>, tool: &str, mut arguments: Value) -> Checked<String> {
    if let Some(arguments) = arguments.as_object_mut() {
        arguments.insert("repo_path".to_owned(), json!(peer.folder("repository")?.0));
    }
    peer.tell(tool, arguments).await
}

async fn status(peer: &Peer<'_>) -> Checked {
    has(&tell(peer, "git_status", json!({})).await?, "note.txt")
}

async fn add_and_commit(peer: &Peer<'_>) -> Checked {
    tell(peer, "git_add", json!({ "files": ["note.txt"] })).await?;
    has(&tell(peer, "git_diff_staged", json!({})).await?, "+first")?;
    has(&tell(peer, "git_commit", json!({ "message": "Begin" })).await?, "committed")
}

async fn log(peer: &Peer<'_>) -> Checked {
    has(&tell(peer, "git_log", json!({ "max_count": 1 })).await?, "Begin")?;
    has(&tell(peer, "git_show", json!({ "revision": "HEAD" })).await?, "ada@example.com")
}

async fn elsewhere(peer: &Peer<'_>) -> Checked {
    let result = peer.client.call("git_status", json!({ "repo_path": peer.folder("empty")?.0 })).await?;
    require(result.is_error, format_args!("{result:?}"))
}
