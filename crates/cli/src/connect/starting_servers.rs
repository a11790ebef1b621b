use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::session::CommandSession;
use crate::admin::AdminClient;
use crate::terminal::escape_line;

/// How long a command waits for servers that the hub is connecting, as long as a call of another client would.
const START_WAIT: Duration = Duration::from_secs(15);

/// How often it looks.
const POLL: Duration = Duration::from_millis(200);

/// Waits while the hub connects servers without listed tools, such as after its start; returns whether there were any.
pub(crate) async fn wait_for_starting_servers(hub: Option<&AdminClient>, session: &CommandSession) -> bool {
    let Some(hub) = hub else { return false };
    let mut awaited = connecting_servers(hub);
    if awaited.is_empty() {
        return false;
    }
    let names: Vec<String> = awaited.iter().map(|name| format!("`{}`", escape_line(name))).collect();
    let wait = START_WAIT.as_secs();
    session.screen.print(&format!("waiting up to {wait} s for {} to start\n", names.join(", ")));
    let limit = Instant::now() + START_WAIT;
    while !awaited.is_empty() && Instant::now() < limit {
        tokio::time::sleep(POLL).await;
        // One that fails is connected again after a while, which is not waited for.
        let connecting = connecting_servers(hub);
        awaited.retain(|name| connecting.contains(name));
    }
    true
}

fn connecting_servers(hub: &AdminClient) -> BTreeSet<String> {
    let servers = hub.status().unwrap_or_default();
    servers
        .into_iter()
        .filter(|server| server.tools == 0 && server.state == "connecting")
        .map(|server| server.name)
        .collect()
}
