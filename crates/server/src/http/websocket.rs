use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use trunkline_http1::server::{ConnectionUpgrade, RequestHead};
use trunkline_protocol::Refusal;
use trunkline_transport::{CloseReason, WebSocketChannel, WebSocketRole, accept_key};

use super::auth::Authenticated;
use super::body::McpResponseBody;
use super::endpoint::HttpServiceInner;
use super::open_channels::{ChannelPlace, OpenChannels};
use super::socket::ConnectionSocket;
use crate::access_grant::AccessGrant;
use crate::admission::SlowReaderEvicted;
use crate::channel::ChannelServer;
use crate::env::Env;
use crate::server_core::ServerCore;

/// The subprotocol of this protocol, which clients may offer in `Sec-WebSocket-Protocol`.
const SUBPROTOCOL: &str = "mcp";

/// How long a peer may take to answer our close frame with its own.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The WebSockets of one endpoint, each served by a task that is owned here: it ends with the endpoint at the latest.
pub(super) struct WebSocketTasks {
    tasks: Mutex<JoinSet<()>>,
    channels: OpenChannels,
}

impl WebSocketTasks {
    pub(super) fn new(channels: OpenChannels) -> Self {
        Self { tasks: Mutex::default(), channels }
    }

    /// Returns how many WebSockets are open.
    pub(super) fn count(&self) -> usize {
        let mut tasks = self.lock();
        while tasks.try_join_next().is_some() {}
        tasks.len()
    }

    /// Waits until every WebSocket is closed.
    pub(super) async fn wait_closed(&self) {
        while std::future::poll_fn(|cx| self.lock().poll_join_next(cx)).await.is_some() {}
    }

    /// Ends every WebSocket at once.
    pub(super) async fn shutdown(&self) {
        self.lock().abort_all();
        self.wait_closed().await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock()
    }
}

/// The source of an upgraded connection, which depends on its listener.
enum UpgradeSource {
    Native(ConnectionUpgrade<ConnectionSocket>),
    #[cfg(feature = "hyper")]
    Hyper(hyper::upgrade::OnUpgrade),
}

impl UpgradeSource {
    fn from_extensions(extensions: &Extensions) -> Option<Self> {
        let ours = extensions.get::<ConnectionUpgrade<ConnectionSocket>>().cloned().map(Self::Native);
        #[cfg(feature = "hyper")]
        let ours = ours.or_else(|| extensions.get().cloned().map(Self::Hyper));
        ours
    }
}

impl HttpServiceInner {
    /// Upgrades a connection to a WebSocket; `Host`, `Origin` and token were checked before.
    ///
    /// # Errors
    /// The request is no WebSocket handshake, or the limit of channels is reached.
    pub(super) fn upgrade(
        &self,
        head: &RequestHead,
        sender: Authenticated,
    ) -> Result<Response<McpResponseBody>, Refusal> {
        let parts = head.parts();
        if parts.method != Method::GET {
            return Err(Refusal::NOT_ALLOWED);
        }
        let key = key(&parts.headers)?;
        let subprotocol = subprotocol(&parts.headers)?;
        let handing = UpgradeSource::from_extensions(&parts.extensions).ok_or(Refusal::UPGRADE_REQUIRED)?;
        if self.core.shutdown.is_draining() {
            return Err(Refusal::SHUTTING_DOWN);
        }
        let env = self.env(head)?;
        let place = self.web_sockets.channels.admit(&sender.principal, head.remote_address());
        let place = place.ok_or(Refusal::TOO_MANY)?;
        let (core, address) = (self.core.clone(), head.remote_address());
        self.web_sockets.spawn(async move {
            match handing {
                UpgradeSource::Native(handover) => {
                    let Some((socket, ahead)) = handover.upgraded().await else { return };
                    serve(core, (socket, address), ahead, sender, env, place).await;
                }
                #[cfg(feature = "hyper")]
                UpgradeSource::Hyper(upgrade) => {
                    let Ok(upgraded) = upgrade.await else { return };
                    let stream = hyper_util::rt::TokioIo::new(upgraded);
                    serve(core, (stream, address), Bytes::new(), sender, env, place).await;
                }
            }
        });
        Ok(switching_protocols(&accept_key(key), subprotocol))
    }
}

/// Serves an upgraded connection until it ends.
async fn serve(
    core: Arc<ServerCore>,
    (stream, address): (impl AsyncRead + AsyncWrite + Unpin + Send + 'static, Option<IpAddr>),
    ahead: Bytes,
    sender: Authenticated,
    env: Env,
    place: ChannelPlace,
) {
    let (limit, start_timeout) = (core.limits.message_bytes, core.limits.first_request_timeout);
    let channel = WebSocketChannel::with_bytes(stream, ahead, WebSocketRole::Server, limit).await;
    let credential_end = AccessGrant::end(sender.grant.as_ref());
    let server = ChannelServer::new(core, sender.principal, channel).with_env(env).ended_by_owner();
    let server = server.over("websocket").with_remote_address(address).with_grant(sender.grant);
    let mut server = server.with_start_timeout(start_timeout).with_activity(place.activity());
    let mut closing = CloseReason::GoingAway;
    let served = match credential_end {
        None => (&mut server).await,
        Some(end) => tokio::select! {
            biased;
            () = end => {
                closing = CloseReason::PolicyViolation;
                Ok(0)
            }
            served = &mut server => served,
        },
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a WebSocket ended");
        if SlowReaderEvicted::caused(&error) {
            // The peer does not read, and its unread messages are to be dropped.
            return;
        }
        if error.kind() == io::ErrorKind::QuotaExceeded {
            closing = CloseReason::TryAgainLater;
        }
    }
    // The peer reads no more responses.
    server.abandon();
    let closing = server.channel_mut().close(closing);
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
}

fn switching_protocols(accept: &str, subprotocol: Option<&'static str>) -> Response<McpResponseBody> {
    let mut response = Response::new(McpResponseBody::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(accept) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if let Some(subprotocol) = subprotocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(subprotocol));
    }
    response
}

/// Returns the key of a WebSocket handshake (RFC 6455 §4.2.1).
fn key(headers: &HeaderMap) -> Result<&[u8], Refusal> {
    let asks = has_token(headers, CONNECTION, "upgrade")
        && has_token(headers, UPGRADE, "websocket")
        && has_token(headers, SEC_WEBSOCKET_VERSION, "13");
    if !asks {
        return Err(Refusal::UPGRADE_REQUIRED);
    }
    let mut keys = headers.get_all(SEC_WEBSOCKET_KEY).iter().map(HeaderValue::as_bytes);
    match (keys.next(), keys.next()) {
        (Some(key), None) if is_websocket_key(key) => Ok(key),
        _ => Err(Refusal::INVALID_REQUEST.with_message("one Sec-WebSocket-Key of 16 bytes is required")),
    }
}

/// Reports whether a text is 16 bytes in base64.
fn is_websocket_key(text: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.strip_suffix(b"==").is_some_and(|digits| digits.len() == 22 && digits.iter().all(is_digit))
}

/// Chooses the subprotocol: ours if it is offered, none if nothing is.
fn subprotocol(headers: &HeaderMap) -> Result<Option<&'static str>, Refusal> {
    if !headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
        Ok(None)
    } else if has_token(headers, SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        Ok(Some(SUBPROTOCOL))
    } else {
        Err(Refusal::INVALID_REQUEST.with_message("the only subprotocol spoken here is `mcp`"))
    }
}

fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| item.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: (&str, &str) = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    const ASKS: [(&str, &str); 3] =
        [("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket"), ("sec-websocket-version", "13")];

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn websocket_handshake_needs_three_headers_and_one_key() {
        let [connection, upgrade, version] = ASKS;
        for (pairs, expected) in [
            (&[connection, upgrade, version, KEY][..], 101),
            (&[upgrade, version, KEY], 426),
            (&[connection, version, KEY], 426),
            (&[connection, upgrade, ("sec-websocket-version", "8"), KEY], 426),
            (&[connection, upgrade, version], 400),
            (&[connection, upgrade, version, KEY, KEY], 400),
            (&[connection, upgrade, version, ("sec-websocket-key", "short")], 400),
        ] {
            let found = headers(pairs);
            let status =
                key(&found).map_or_else(|refusal| refusal.status(trunkline_protocol::Era::Legacy), |_| 101);
            assert_eq!(status, expected, "{pairs:?}");
        }
    }

    #[test]
    fn websocket_subprotocol_is_mcp_or_none() {
        for (offered, expected) in [
            (&[][..], Ok(None)),
            (&[("sec-websocket-protocol", "mcp")], Ok(Some("mcp"))),
            (&[("sec-websocket-protocol", "other, mcp")], Ok(Some("mcp"))),
            (&[("sec-websocket-protocol", "other"), ("sec-websocket-protocol", "mcp")], Ok(Some("mcp"))),
            (&[("sec-websocket-protocol", "other")], Err(())),
            (&[("sec-websocket-protocol", "")], Err(())),
        ] {
            assert_eq!(subprotocol(&headers(offered)).map_err(|_| ()), expected, "{offered:?}");
        }
    }
}
