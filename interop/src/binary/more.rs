//! Checks that are more than one run, or that look closer.

use serde_json::json;
use trunkline_client::transport::Command;
use trunkline_client::transport::process::{OutputStream, ProcessExit, RunOutput, run, run_with_lines};

use super::driver::{Driver, limits, said};
use crate::leftovers::MARK;
use crate::page;
use crate::report::{Checked, at, has, require, same};
use crate::sdk::git::make_repository;

pub(super) async fn info(driver: &Driver<'_>) -> Checked {
    let info = driver.json(&["info", "--json"]).await?;
    same(at(&info, "/protocolVersion").as_str(), Some(driver.revision().as_str()))?;
    same(at(&info, "/name").as_str(), Some("interop"))?;
    let transport = if driver.is_fast() { "streamable-http" } else { "stdio" };
    same(at(&info, "/transport").as_str(), Some(transport))?;
    same(at(&info, "/capabilities/resources/subscribe").as_bool(), Some(true))
}

pub(super) async fn result_as_json(driver: &Driver<'_>) -> Checked {
    let result = driver.json(&["call", "add", "a=2", "b=3", "--json"]).await?;
    same(at(&result, "/structuredContent"), &json!({ "sum": 5 }))
}

pub(super) async fn saved_bytes(driver: &Driver<'_>) -> Checked {
    let file = driver.options.scratch.join("bytes.bin");
    let finished = driver.run(&["read", "note://bytes", "--out", "{scratch}/bytes.bin"]).await?;
    require(finished.exit.success(), said(&finished))?;
    same(std::fs::read(file)?, [0, 255, 1])
}

/// Runs the command so that it can get signals, and passes its output to an observer.
async fn observe(
    driver: &Driver<'_>,
    words: &[&str],
    mut seen: impl FnMut(&str) + Send,
) -> Checked<RunOutput> {
    let file = driver.options.scratch.join("process-id");
    let inner = driver.command(words)?;
    let command = Command::new("sh")
        .args(["-c", r#"echo $$ > "$0"; exec "$@""#])
        .arg(&file)
        .arg(inner.program())
        .args(inner.arguments().iter().cloned())
        .env(MARK, &driver.mark);
    let limits = limits();
    let finished = run_with_lines(&command, &limits, |line| {
        if line.stream == OutputStream::Stderr {
            seen(&line.text);
        }
    });
    Ok(finished.await?)
}

/// Ctrl-C ends the command with its code, and the call at the server.
pub(super) async fn interrupted(driver: &Driver<'_>) -> Checked {
    let key = format!("key={}", driver.mark);
    let progress = tokio::sync::Notify::new();
    let words = ["call", "hold", &key, "-v"];
    let holding = observe(driver, &words, |line| {
        if line.starts_with("progress") {
            progress.notify_one();
        }
    });
    let interrupting = async {
        progress.notified().await;
        let file = driver.options.scratch.join("process-id");
        let id = std::fs::read_to_string(file)?;
        let kill = Command::new("kill").args(["-INT", id.trim()]);
        require(run(&kill, &limits()).await?.exit.success(), "there is nobody to interrupt")
    };
    let (held, interrupted) = tokio::join!(holding, interrupting);
    interrupted?;
    let held = held?;
    require(held.exit == ProcessExit::Code(130), said(&held))?;
    if driver.is_fast() {
        // Over pipes the server is gone with the command.
        let finished = driver.run(&["call", "released", &key]).await?;
        has(&finished.stdout.text(), "released")?;
    }
    Ok(())
}

/// A change by another client is notified.
pub(super) async fn watched(driver: &Driver<'_>) -> Checked {
    let begun = tokio::sync::Notify::new();
    let watching = observe(driver, &["watch", "--tools", "--count", "1", "--json"], |_| begun.notify_one());
    let changing = async {
        begun.notified().await;
        driver.run(&["call", "change", "what=tools"]).await
    };
    let (watched, changed) = tokio::join!(watching, changing);
    require(changed?.exit.success(), "nothing was changed")?;
    let watched = watched?;
    require(watched.exit.success(), said(&watched))?;
    has(&watched.stdout.text(), "extra")
}

pub(super) async fn fetched(driver: &Driver<'_>) -> Checked {
    let url = format!("url=http://{}/page", page::serve().await?);
    let tool = driver.run(&["call", "fetch", &url]).await?;
    has(&tool.stdout.text(), page::WORDS)?;
    let prompt = driver.run(&["prompt", "fetch", &url]).await?;
    has(&prompt.stdout.text(), page::WORDS)
}

pub(super) async fn repository(driver: &Driver<'_>) -> Checked {
    make_repository(&driver.options.scratch).await?;
    let status = driver.run(&["call", "git_status", "repo_path={scratch}/repository"]).await?;
    has(&status.stdout.text(), "note.txt")?;
    let elsewhere = driver.run(&["call", "git_status", "repo_path={scratch}/empty"]).await?;
    require(elsewhere.exit == ProcessExit::Code(1), said(&elsewhere))?;
    has(&elsewhere.stderr.text(), "tool `git_status` failed")
}
