//! The stream for what belongs to no request: changes, log messages, and questions at any time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use trunkline_protocol::{Message, Method};

use super::events::{Events, Next};
use super::resumption::Resumption;
use super::shared::{NoStream, Shared};
use crate::carrier::LossKind;

/// How often in a row the stream may fail before somebody should know.
const MANY_FAILURES: u32 = 10;

/// A stream that says nothing and ends sooner than this was none.
const SHORTEST_STREAM: Duration = Duration::from_secs(5);

/// Starts the task that drives the stream, once the handshake is over.
pub(super) fn begin(shared: &Arc<Shared>) {
    let driven = shared.clone();
    shared.stand(|settle| tokio::spawn(drive(driven, settle)).abort_handle());
}

/// Keeps the stream open for as long as the server offers it, and tries to have it again for as long as there is a session:
/// whoever watches would else wait in vain.
async fn drive(shared: Arc<Shared>, settle: watch::Sender<bool>) {
    let mut resumption = Resumption::default();
    let session = shared.session_number();
    // Something may have been said that nobody heard; it is told once there is somebody to ask what it was.
    let mut missed = false;
    loop {
        let opened = Instant::now();
        let stream = shared.open_stream(session, resumption.last()).await;
        settle.send_replace(true);
        let failed = match stream {
            Ok(events) => {
                if std::mem::take(&mut missed) {
                    shared.aside.interrupted();
                }
                let said = listen(&shared, events, &mut resumption).await;
                missed = resumption.last().is_none();
                !said && opened.elapsed() < SHORTEST_STREAM
            }
            Err(NoStream::Later(how)) => {
                tracing::debug!(how, "there is no standing stream");
                true
            }
            Err(NoStream::Never(loss)) => match loss.kind {
                // What the last event was is not known any more; what came after it is lost.
                LossKind::Status { status: 400, .. } if resumption.last().is_some() => {
                    missed = true;
                    resumption = Resumption::default();
                    true
                }
                LossKind::SessionGone => {
                    shared.aside.forgotten();
                    return;
                }
                LossKind::Status { status: 405, .. } if !missed => return,
                kind => {
                    tracing::debug!(?kind, "there will be no standing stream");
                    shared.aside.interrupted();
                    return;
                }
            },
        };
        if failed && resumption.fail() == MANY_FAILURES {
            tracing::warn!("the server's stream of changes fails again and again");
        }
        tokio::time::sleep(resumption.delay()).await;
    }
}

/// Gives everything that comes aside; reports whether anything came before the end.
async fn listen(shared: &Arc<Shared>, mut events: Events, resumption: &mut Resumption) -> bool {
    let mut said = false;
    let mut noise = 0;
    loop {
        match events.next(resumption).await {
            Next::Message(message) => {
                said = true;
                receive(shared, message);
            }
            Next::Noise(unreadable) => {
                tracing::debug!(problem = %unreadable.refusal, "skipped what is no message");
                noise += 1;
                if noise > shared.limits.noise {
                    return false;
                }
            }
            Next::TooLong(limit) => {
                tracing::warn!(limit, "a message of the server is too long and was skipped");
                shared.aside.interrupted();
            }
            Next::End(_) => return said,
        }
    }
}

fn receive(shared: &Arc<Shared>, message: Message) {
    match message {
        Message::Notification(notice) => shared.aside.notice(notice),
        Message::Request(request) => {
            if request.method == Method::Ping.as_str() {
                shared.pong(&request.id);
            } else if let Err(refused) = shared.aside.question(request) {
                shared.refuse(&refused.id);
            }
        }
        Message::Response(response) => {
            tracing::debug!(id = ?response.id, "dropped a response that nobody waits for");
        }
    }
}
