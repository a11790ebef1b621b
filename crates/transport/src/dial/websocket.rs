use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use trunkline_http1::Url;
use trunkline_http1::client::HttpClient;

use super::dialer::{Dialer, TunnelDialer};
use super::stream::DialedStream;
use crate::http::{HttpClientOptions, HttpError, HttpRequest, ResponseHeaders};
use crate::websocket::{WebSocketChannel, WebSocketRole, accept_key};

/// The WebSocket subprotocol of MCP peers.
const SUBPROTOCOL: &str = "mcp";

/// The most bytes of an error body that are kept for messages.
const MAX_EXCERPT_BYTES: usize = 512;

/// The reason why a WebSocket could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebSocketError {
    /// There was no response.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server did not switch protocols.
    #[error("the server answered the request for a WebSocket with status {status}")]
    Refused {
        /// The status of the response.
        status: StatusCode,
        /// Its headers.
        headers: Box<ResponseHeaders>,
        /// The beginning of its body.
        excerpt: String,
    },
    /// The server switched protocols with an invalid handshake.
    #[error("the server's handshake is wrong: {0}")]
    Handshake(&'static str),
}

impl Dialer {
    /// Opens a WebSocket with messages of at most `limit` bytes; the headers are sent with its request.
    ///
    /// # Errors
    /// The server cannot be reached, or rejected the handshake.
    pub async fn websocket(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        limit: usize,
    ) -> Result<WebSocketChannel<DialedStream>, WebSocketError> {
        let key = random_key();
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
        headers.insert(header::SEC_WEBSOCKET_KEY, key.clone());
        let client = HttpClient::new(TunnelDialer(self.clone()), url.clone(), &HttpClientOptions::default());
        let place =
            client.target(url).map_err(|_| WebSocketError::Handshake("the address cannot be used"))?;
        let request =
            HttpRequest { method: Method::GET, target: place, headers: headers.into(), body: Vec::new() };
        let mut response = client.send(&request).await?;
        if response.status != StatusCode::SWITCHING_PROTOCOLS {
            let excerpt = response.body.read_prefix(MAX_EXCERPT_BYTES).await;
            return Err(WebSocketError::Refused {
                status: response.status,
                headers: Box::new(response.headers),
                excerpt: String::from_utf8_lossy(&excerpt).into_owned(),
            });
        }
        check(&response.headers, key.as_bytes()).map_err(WebSocketError::Handshake)?;
        let (stream, ahead) =
            response.body.into_stream().ok_or(WebSocketError::Handshake("the connection is gone"))?;
        Ok(WebSocketChannel::with_bytes(stream, ahead, WebSocketRole::Client, limit).await)
    }
}

fn random_key() -> HeaderValue {
    let mut bytes = [0; 16];
    // The key only proves that the response belongs to this request, so a failure of the random source does no harm.
    let _ = getrandom::fill(&mut bytes);
    HeaderValue::from_str(&STANDARD.encode(bytes)).unwrap_or(HeaderValue::from_static(""))
}

/// Checks the server's handshake (RFC 6455 §4.1).
fn check(headers: &ResponseHeaders, key: &[u8]) -> Result<(), &'static str> {
    let one = |name| headers.get_text(&name).filter(|_| headers.get_all(&name).count() == 1);
    if !one(header::UPGRADE).is_some_and(|value| value.eq_ignore_ascii_case("websocket")) {
        return Err("`Upgrade` does not say `websocket`");
    }
    let mut options =
        headers.get_all(&header::CONNECTION).flat_map(|value| value.split(|byte| *byte == b','));
    if !options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade")) {
        return Err("`Connection` does not say `Upgrade`");
    }
    if one(header::SEC_WEBSOCKET_ACCEPT) != Some(accept_key(key).as_str()) {
        return Err("`Sec-WebSocket-Accept` does not belong to the request");
    }
    if headers.has(&header::SEC_WEBSOCKET_EXTENSIONS) {
        return Err("`Sec-WebSocket-Extensions` names an extension that was not offered");
    }
    // A server that selects no subprotocol is accepted: it only does not know the name.
    match headers.get(&header::SEC_WEBSOCKET_PROTOCOL) {
        Some(chosen) if chosen != SUBPROTOCOL.as_bytes() => {
            Err("`Sec-WebSocket-Protocol` names a subprotocol that was not offered")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_servers_handshake_is_checked() {
        let key = b"dGhlIHNhbXBsZSBub25jZQ==";
        let good = [
            ("upgrade", "WebSocket"),
            ("connection", "keep-alive, Upgrade"),
            ("sec-websocket-accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ];
        type HeaderChanges = &'static [(&'static str, &'static str)];
        let table: &[(HeaderChanges, Option<&str>)] = &[
            (&[], None),
            (&[("sec-websocket-protocol", "mcp")], None),
            (&[("sec-websocket-protocol", "chat")], Some("Sec-WebSocket-Protocol")),
            (&[("sec-websocket-extensions", "permessage-deflate")], Some("Sec-WebSocket-Extensions")),
            (&[("upgrade", "h2c")], Some("`Upgrade` does not")),
            (&[("connection", "close")], Some("`Connection`")),
            (&[("sec-websocket-accept", "AAAA")], Some("Sec-WebSocket-Accept")),
        ];
        for (changes, expected) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in good.iter().chain(*changes) {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            let error = check(&(&headers).into(), key).err();
            assert_eq!(error.is_some(), expected.is_some(), "{changes:?}");
            assert!(
                error.unwrap_or_default().contains(expected.unwrap_or_default()),
                "{changes:?}: {error:?}"
            );
        }
        let mut twice = HeaderMap::new();
        for (name, value) in good {
            twice.insert(name, HeaderValue::from_static(value));
        }
        twice.append("sec-websocket-accept", HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert!(check(&(&twice).into(), key).is_err(), "a header that is there twice has no value");
    }
}
