//! A client that only listens: it subscribes, and holds a standalone stream through whatever happens.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::client::{LoadClient, Resumption};
use super::connection::HttpConnection;
use super::history::HistoryEvent;
use super::messages::method;
use super::record::RunRecord;

/// How often a listener looks whether the run is over.
const TURN: Duration = Duration::from_millis(200);

/// Listens until the run is over; returns early only if the session cannot be opened.
pub(super) fn listen(number: u32, address: SocketAddr, record: &Arc<RunRecord>, is_over: &AtomicBool) {
    let mut client = LoadClient::new(number, address, record.clone());
    let opened = client.open().and_then(|()| client.subscribe());
    if let Err(error) = opened {
        record.note_unexpected(format!("listener {number} has no session: {error}"));
        return;
    }
    let mut stream: Option<HttpConnection> = None;
    let mut position: Option<String> = None;
    while !is_over.load(Ordering::Relaxed) {
        let Some(connection) = &mut stream else {
            stream = reconnect(&mut client, &mut position);
            match &stream {
                Some(connection) => drop(connection.set_timeout(TURN)),
                None => sleep(TURN),
            }
            continue;
        };
        match connection.next_event() {
            Ok(Some(event)) => {
                client.note_event(&event);
                position = event.id.or(position);
                let message = serde_json::from_str::<Value>(&event.data).unwrap_or_default();
                if method(&message) == Some("notifications/resources/updated") {
                    record.add(HistoryEvent::Notified(client.session));
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Ok(None) | Err(_) => stream = None,
        }
    }
}

/// Resumes the stream after the last event, or opens the first one.
fn reconnect(client: &mut LoadClient, position: &mut Option<String>) -> Option<HttpConnection> {
    let Some(last) = position else { return client.listen() };
    match client.resume(last).ok()? {
        Resumption::Open(connection) => Some(connection),
        Resumption::Later => None,
        Resumption::Over => {
            *position = None;
            None
        }
    }
}
