//! `@modelcontextprotocol/server-memory`, a graph in a file.

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use trunkline_client::protocol::model::ResourceBody;
use trunkline_client::{ChangeEvent, ChangeFilter};

use super::{LEGACY, Server, checks};
use crate::answers::Answers;
use crate::options::Options;
use crate::peer::Peer;
use crate::report::{Checked, at, has, require, same};

pub(super) const SERVER: Server = Server {
    name: "memory",
    identity: "memory-server",
    eras: LEGACY,
    prepare,
    checks: checks![lists, remember, find, changes_of_the_graph, kept],
    legacy: &[],
    streams: &[],
    modern: &[],
    connects_often: true,
};

pub(crate) fn prepare(options: &Options, _: &Answers) -> Checked {
    let file = options.scratch.join("memory.jsonl");
    if file.exists() {
        std::fs::remove_file(file)?;
    }
    Ok(())
}

async fn lists(peer: &Peer<'_>) -> Checked {
    let tools = peer.client.tools().await?;
    require(tools.len() >= 9 && tools.skipped.is_empty(), format_args!("{tools:?}"))?;
    same(peer.client.resources().await?.len(), 1)
}

async fn remember(peer: &Peer<'_>) -> Checked {
    let ada = json!({ "name": "Ada", "entityType": "person", "observations": ["wrote programs"] });
    let engine = json!({ "name": "Engine", "entityType": "machine", "observations": [] });
    let made = peer.client.call("create_entities", json!({ "entities": [ada, engine] })).await?;
    same(at(&made.decode::<Value>()?, "/entities").as_array().map(Vec::len), Some(2))?;
    let relation = json!({ "from": "Ada", "to": "Engine", "relationType": "programs" });
    peer.tell("create_relations", json!({ "relations": [relation] })).await?;
    Ok(())
}

async fn find(peer: &Peer<'_>) -> Checked {
    let found = peer.client.call("search_nodes", json!({ "query": "programs" })).await?;
    let found: Value = found.decode()?;
    same(at(&found, "/entities/0/name").as_str(), Some("Ada"))?;
    let missing = peer.client.call("search_nodes", json!({ "query": "nobody" })).await?;
    same(at(&missing.decode::<Value>()?, "/entities").as_array().map(Vec::len), Some(0))
}

async fn changes_of_the_graph(peer: &Peer<'_>) -> Checked {
    let resources = peer.client.resources().await?;
    let uri = resources.first().map(|resource| resource.uri.clone()).ok_or("there is no resource")?;
    let mut changes = peer.client.subscribe(ChangeFilter::default().with_uri(uri.as_str())).await?;
    let observations = json!([{ "entityName": "Ada", "contents": ["lived in London"] }]);
    peer.tell("add_observations", json!({ "observations": observations })).await?;
    same(changes.next().await, Some(ChangeEvent::Resource(uri.clone())))?;
    match peer.client.read(uri).await?.contents.first().map(|contents| &contents.body) {
        Some(ResourceBody::Text(text)) => has(text, "lived in London"),
        other => Err(format!("{other:?}").into()),
    }
}

/// Another process reads what this one stored.
async fn kept(peer: &Peer<'_>) -> Checked {
    let other = Peer::connect(peer.options, peer.answers.clone()).await?;
    has(&other.say("read_graph").await?, "lived in London")?;
    other.client.close().await;
    Ok(())
}
