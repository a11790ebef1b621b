//! The checks that drive a server with the client SDK.

mod changes;
mod early;
mod everything;
mod fetch;
pub(crate) mod filesystem;
pub(crate) mod git;
mod life;
pub(crate) mod memory;
mod offers;
mod questions;
mod time;
mod work;

use trunkline_client::BoxFuture;
use trunkline_client::protocol::Era;

use crate::answers::Answers;
use crate::options::Options;
use crate::peer::Peer;
use crate::report::{Checked, Report};

/// One check: the name of its line, and what it does.
pub(crate) type Check = (&'static str, for<'a> fn(&'a Peer<'a>) -> BoxFuture<'a, Checked>);

/// Makes a list of checks of functions.
macro_rules! checks {
    ($($check:path),* $(,)?) => {
        &[$((
            { const PATH: &str = stringify!($check); crate::sdk::last_word(PATH) },
            |peer| Box::pin($check(peer)),
        )),*]
    };
}
pub(crate) use checks;

/// What is known of a server before it is reached.
#[derive(Clone, Copy)]
struct Server {
    name: &'static str,
    /// What it calls itself.
    identity: &'static str,
    eras: &'static [Era],
    /// Makes ready what has to be there before it starts.
    prepare: fn(&Options, &Answers) -> Checked,
    checks: &'static [Check],
    /// What a session has beside.
    legacy: &'static [Check],
    /// What a session over Streamable HTTP has beside.
    streams: &'static [Check],
    /// What there is beside where there are no sessions.
    modern: &'static [Check],
    /// Whether a connection is made in no time, so that every older revision is tried too.
    connects_often: bool,
}

const BOTH: &[Era] = &[Era::Legacy, Era::Modern];
const LEGACY: &[Era] = &[Era::Legacy];

/// A server of ours on an official SDK; they all offer the same.
const OURS: Server = Server {
    name: "",
    identity: "interop",
    eras: LEGACY,
    prepare: questions::prepare,
    checks: checks![
        offers::about,
        offers::lists,
        offers::read,
        offers::read_unknown,
        offers::prompt,
        offers::completion,
        work::call,
        work::call_fails,
        work::call_unknown_tool,
        work::call_wrong_arguments,
        work::call_concurrently,
        work::progress,
        questions::form_accept,
        questions::form_decline,
        questions::form_cancel,
        questions::page,
        questions::one_after_the_other,
        questions::model,
        questions::roots,
        questions::by_steps,
        changes::log,
        changes::tools,
        changes::prompts_and_resources,
        changes::resource,
        work::cancel,
        work::timeout,
        work::usable_after_cancel,
    ],
    legacy: checks![work::ping],
    streams: checks![work::resume],
    modern: checks![work::no_ping],
    connects_often: true,
};

const SERVERS: &[Server] = &[
    Server { name: "npm-sdk-v1", ..OURS },
    Server { name: "npm-server-v2", eras: BOTH, ..OURS },
    Server { name: "npm-sdk-2025-03-26", ..early::SERVER },
    Server { name: "pypi-mcp-2024-11-05", ..early::FRAGILE },
    Server { name: "pypi-mcp-v1", ..OURS },
    Server { name: "pypi-mcp-v2", eras: BOTH, ..OURS },
    everything::SERVER,
    filesystem::SERVER,
    memory::SERVER,
    time::SERVER,
    git::SERVER,
    fetch::SERVER,
];

/// Runs every check that the server and the era have.
///
/// # Errors
/// The server is unknown.
pub(crate) async fn run(options: &Options, report: &mut Report) -> Result<(), String> {
    let server = SERVERS.iter().find(|server| server.name == options.server);
    let server = server.ok_or_else(|| format!("there are no checks for `{}`", options.server))?;
    let answers = Answers::default();
    report.check("prepare", async { (server.prepare)(options, &answers) }).await;
    let Some(peer) = report.check("connect", life::connect(options, server, &answers)).await else {
        return Ok(());
    };
    let of_era = if peer.is_modern() { server.modern } else { server.legacy };
    let has_streams = !peer.is_modern() && peer.client.server().transport == "streamable-http";
    let of_transport = if has_streams { server.streams } else { &[] };
    for (name, check) in server.checks.iter().chain(of_era).chain(of_transport) {
        report.check(name, check(&peer)).await;
    }
    report.check("end", life::end(peer)).await;
    match options.mode.pin() {
        None if !server.eras.contains(&Era::Modern) => {
            report.check("modern_is_refused", life::modern_is_refused(options, &answers)).await;
        }
        Some(pin) if pin.era() == Era::Legacy && server.connects_often => {
            report.check("older_revisions", life::older_revisions(options, &answers)).await;
        }
        _ => {}
    }
    Ok(())
}

/// Returns the last word of a path.
pub(crate) const fn last_word(path: &'static str) -> &'static str {
    let bytes = path.as_bytes();
    let mut at = bytes.len();
    #[expect(
        clippy::indexing_slicing,
        reason = "the index is below the length, and this runs in the compiler"
    )]
    while at > 0 && bytes[at - 1] != b':' && bytes[at - 1] != b' ' {
        at -= 1;
    }
    path.split_at(at).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_is_named_by_the_last_word_of_its_path() {
        for (path, word) in [("a", "a"), ("a::bc", "bc"), ("a :: bc", "bc"), ("", "")] {
            assert_eq!(last_word(path), word);
        }
    }

    #[test]
    fn no_server_has_two_checks_of_one_name() {
        for server in SERVERS {
            // Those of one era never run beside those of the other.
            for checks in [
                [server.checks, server.legacy, server.streams].concat(),
                [server.checks, server.modern].concat(),
            ] {
                let names: Vec<_> = checks.iter().map(|(name, _)| *name).collect();
                let unique: std::collections::BTreeSet<_> = names.iter().collect();
                assert_eq!(unique.len(), names.len(), "{}", server.name);
            }
        }
    }
}
