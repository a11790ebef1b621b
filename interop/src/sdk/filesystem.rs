//! `@modelcontextprotocol/server-filesystem`, which is started without a folder and requests the roots.

use serde_json::{Value, json};
use trunkline_client::protocol::model::{Content, InputRequest};

use super::{LEGACY, Server, checks};
use crate::answers::Answers;
use crate::options::Options;
use crate::peer::Peer;
use crate::report::{Checked, has, require, same};

pub(super) const SERVER: Server = Server {
    name: "filesystem",
    identity: "secure-filesystem-server",
    eras: LEGACY,
    prepare,
    checks: checks![roots_are_allowed, write_and_read, outside_is_refused, media, roots_follow],
    legacy: &[],
    streams: &[],
    modern: &[],
    connects_often: true,
};

/// The folder that is a root in the beginning, and the one that is it later.
const FOLDERS: [&str; 2] = ["first", "second"];

pub(crate) fn prepare(options: &Options, answers: &Answers) -> Checked {
    for folder in FOLDERS {
        std::fs::create_dir_all(options.scratch.join(folder))?;
        std::fs::write(options.scratch.join(folder).join("note.txt"), folder)?;
    }
    // The smallest picture there is.
    std::fs::write(options.scratch.join("first/dot.gif"), b"GIF89a\x01\0\x01\0\0\0\0;")?;
    let [first, _] = FOLDERS;
    answers.have_roots([format!("file://{}", options.scratch.canonicalize()?.join(first).display())]);
    Ok(())
}

/// Waits until the server allows a folder: it requests the roots after the connection and after a change.
async fn allowed(peer: &Peer<'_>, folder: &str) -> Checked {
    peer.answers.asked().wait_for(|(_, question)| *question == InputRequest::Roots).await;
    let wanted = format!("Allowed directories:\n{}", peer.folder(folder)?.0.display());
    while peer.say("list_allowed_directories").await? != wanted {}
    Ok(())
}

async fn roots_are_allowed(peer: &Peer<'_>) -> Checked {
    allowed(peer, "first").await
}

async fn write_and_read(peer: &Peer<'_>) -> Checked {
    let path = peer.folder("first")?.0.join("new.txt");
    peer.tell("write_file", json!({ "path": path, "content": "one\ntwo\n" })).await?;
    same(std::fs::read_to_string(&path)?.as_str(), "one\ntwo\n")?;
    let read = peer.client.call("read_text_file", json!({ "path": path, "head": 1 })).await?;
    same(read.decode::<Value>()?, json!({ "content": "one" }))?;
    let listed = peer.tell("list_directory", json!({ "path": peer.folder("first")?.0 })).await?;
    has(&listed, "[FILE] new.txt")
}

async fn outside_is_refused(peer: &Peer<'_>) -> Checked {
    let path = peer.folder("second")?.0.join("note.txt");
    let read = peer.client.call("read_text_file", json!({ "path": path })).await?;
    require(read.is_error, format_args!("{read:?}"))?;
    has(&read.text(), "Access denied")
}

async fn media(peer: &Peer<'_>) -> Checked {
    let path = peer.folder("first")?.0.join("dot.gif");
    let read = peer.client.call("read_media_file", json!({ "path": path })).await?;
    match &*read.content {
        [Content::Image(image)] => same(image.mime_type.as_str(), "image/gif"),
        other => Err(format!("{other:?}").into()),
    }
}

async fn roots_follow(peer: &Peer<'_>) -> Checked {
    peer.answers.asked().take();
    peer.answers.have_roots([peer.folder("second")?.1]);
    peer.client.roots_changed().await?;
    allowed(peer, "second").await?;
    let path = peer.folder("second")?.0.join("note.txt");
    let read = peer.client.call("read_text_file", json!({ "path": path })).await?;
    same(read.decode::<Value>()?, json!({ "content": "second" }))
}
