//! `mcp-server-git`, with a repository of its own.

use serde_json::json;
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
    modern: &[],
};

async fn git(peer: &Peer<'_>, arguments: &[&str]) -> Checked {
    let command = Command::new("git").arg("-C").arg(peer.folder("repository")?.0).args(arguments.iter().copied());
    let finished = run(&command, &RunLimits::default()).await?;
    require(finished.exit.success(), format_args!("{command}: {}", finished.stderr.text()))
}

/// Makes the repository anew, which is no check of the server but the ground of all others.
async fn repository(peer: &Peer<'_>) -> Checked {
    let path = peer.folder("repository")?.0;
    std::fs::remove_dir_all(&path)?;
    peer.folder("repository")?;
    git(peer, &["init", "--quiet", "--initial-branch", "main"]).await?;
    git(peer, &["config", "user.name", "Ada"]).await?;
    git(peer, &["config", "user.email", "ada@example.com"]).await?;
    std::fs::write(path.join("note.txt"), "first\n")?;
    Ok(())
}

async fn tell(peer: &Peer<'_>, tool: &str, mut arguments: serde_json::Value) -> Checked<String> {
    arguments["repo_path"] = json!(peer.folder("repository")?.0);
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
