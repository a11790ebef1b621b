//! The beginning and the end of a connection.

use std::time::Duration;

use serde_json::json;
use trunkline_client::protocol::{Era, Revision};
use trunkline_client::{ChangeFilter, Error};

use super::Server;
use crate::answers::Answers;
use crate::leftovers;
use crate::options::{At, Options};
use crate::page;
use crate::peer::Peer;
use crate::report::{Checked, require, same};

/// How long a server may need to leave by itself; a client that had to force it takes longer.
const LEAVES_WITHIN: Duration = Duration::from_millis(4_500);

/// Connects, and checks the identity of the server.
pub(super) async fn connect<'o>(
    options: &'o Options,
    server: &Server,
    answers: &Answers,
) -> Checked<Peer<'o>> {
    let peer = Peer::connect(options, answers.clone()).await?;
    let info = peer.client.server();
    same(info.revision, options.mode.expects(server.eras))?;
    let identity = info.identity.as_ref().ok_or("the server does not say what it is")?;
    same(identity.name.as_str(), server.identity)?;
    let transport = match &options.at {
        At::Command(_) => "stdio",
        At::Url(url) if url.ends_with("/sse") => "sse",
        At::Url(_) => "streamable-http",
    };
    same(info.transport, transport)?;
    require(!info.attempts.is_empty(), "no attempt was noted")?;
    Ok(peer)
}

/// Ends the connection: in time, for all clones, with nothing left behind.
pub(super) async fn end(peer: Peer<'_>) -> Checked {
    let watched = peer.client.subscribe(ChangeFilter::all_lists()).await;
    let began = std::time::Instant::now();
    peer.client.clone().close().await;
    let took = began.elapsed();
    require(took < LEAVES_WITHIN, format_args!("it took {took:?}"))?;
    if let Ok(mut changes) = watched {
        // Whatever was still on its way, the stream has to end.
        while futures_util::StreamExt::next(&mut changes).await.is_some() {}
    }
    match peer.client.tools().await {
        Err(Error::Closed { .. }) => {}
        other => return Err(format!("a closed connection gives {other:?}").into()),
    }
    leftovers::none_stays(&peer.mark).await?;
    // Our own servers report how many sessions are open; clients before this one have ended theirs too.
    if let (At::Url(url), "interop") = (&peer.options.at, identity(&peer).as_str()) {
        same(page::fetch_beside(url, "/sessions").await?.as_str(), "0")?;
    }
    Ok(())
}

fn identity(peer: &Peer<'_>) -> String {
    peer.client.server().identity.as_ref().map(|identity| identity.name.clone()).unwrap_or_default()
}

/// A server of the legacy era is never talked to in a modern revision.
pub(super) async fn modern_is_refused(options: &Options, answers: &Answers) -> Checked {
    match Peer::connect_at(options, answers.clone(), Some(Revision::NEWEST)).await {
        Err(Error::Unreachable(unreachable)) => {
            require(!unreachable.attempts.is_empty(), "no attempt was noted")
        }
        other => Err(format!("pinned to {} it gives {other:?}", Revision::NEWEST).into()),
    }
}

/// Every older revision works too, and is the negotiated one.
pub(super) async fn older_revisions(options: &Options, answers: &Answers) -> Checked {
    let older = Revision::ALL.into_iter().filter(|revision| revision.era() == Era::Legacy);
    for revision in older.filter(|revision| *revision != Revision::NEWEST_LEGACY) {
        let peer = Peer::connect_at(options, answers.clone(), Some(revision)).await?;
        same(peer.client.server().revision, revision)?;
        let tools = peer.client.tools().await?;
        require(!tools.is_empty() && tools.skipped.is_empty(), format_args!("{revision}: {tools:?}"))?;
        if tools.iter().any(|tool| tool.name == "add") {
            let result = peer.client.call("add", json!({ "a": 2, "b": 3 })).await?;
            require(result.text().contains('5'), format_args!("{revision}: {result:?}"))?;
        }
        let mark = peer.mark.clone();
        peer.client.close().await;
        leftovers::none_stays(&mark).await?;
    }
    Ok(())
}
